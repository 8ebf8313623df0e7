"""The hours in which a channel sends: days of the week and a time of day, in a zone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WORDS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00")


@dataclass(frozen=True, slots=True)
class Hours:
    """From `start` to `end`, like 08:00 and 18:00, on `days`, by the clocks of `time_zone`. An end before the start is
    on the next day: the day is that of the start."""

    days: Sequence[str]
    start: str
    end: str
    time_zone: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Hours:
        """From its fields, as they are stored or sent. Days are put in order, each once."""
        days = tuple(day for day in DAYS if day in values["days"]) or tuple(values["days"])
        odd = tuple(day for day in values["days"] if day not in DAYS)
        return cls(odd or days, values["start"], values["end"], values["time_zone"])

    @property
    def fields(self) -> dict[str, Any]:
        """As it is stored and told."""
        return asdict(self) | {"days": list(self.days)}

    @property
    def word(self) -> str:
        """As a person reads it."""
        numbers = [DAYS.index(day) for day in self.days]
        in_a_row = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        days = f"{WORDS[numbers[0]]}–{WORDS[numbers[-1]]}" if in_a_row and len(numbers) > 2 else ""
        days = days or ", ".join(WORDS[number] for number in numbers)
        return f"{days} {self.start}–{self.end} ({self.time_zone})"

    def problem(self) -> tuple[str, str]:
        """The first field that can't be so, and why; two "" if all can."""
        if not self.days or any(day not in DAYS for day in self.days):
            return "days", f"takes one or more of {', '.join(DAYS)}"
        for field in ("start", "end"):
            if not _TIME.fullmatch(getattr(self, field)):
                return field, f"'{getattr(self, field)[:20]}' is not a time of day: use 08:00"
        if self.start == self.end or self.start == "24:00":
            return "end", "must be another time than the start; a whole day is 00:00 to 24:00"
        if not _is_zone(self.time_zone):
            return "time_zone", f"'{self.time_zone[:40]}' is not a time zone: use one like Europe/Berlin, or UTC"
        return "", ""

    def include(self, moment: datetime) -> bool:
        """Whether messages are sent at a moment."""
        return self.from_(moment) <= moment

    def from_(self, moment: datetime) -> datetime:
        """The first moment from this one on at which messages are sent: itself inside of the hours."""
        for begin, end in self._around(moment):
            if moment < end:
                return max(moment, begin)
        raise AssertionError("there is a window in every week")

    def _around(self, moment: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The windows of yesterday and of the eight days that follow, in order, in UTC."""
        zone = ZoneInfo(self.time_zone)
        today = moment.astimezone(zone).date()
        for ahead in range(-1, 9):
            day = today + timedelta(days=ahead)
            if DAYS[day.weekday()] in self.days:
                midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
                start, end = _length(self.start), _length(self.end)
                end += timedelta(days=1) if end <= start else timedelta()
                yield (midnight + start).astimezone(UTC), (midnight + end).astimezone(UTC)


def _length(time: str) -> timedelta:
    hours, minutes = time.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes))


def _is_zone(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}", name):
        return False
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return False
    return True
