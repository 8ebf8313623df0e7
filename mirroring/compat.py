"""What a newer version of LakeMirror may have written on the same tables: who doesn't know it leaves it alone.

Deployments of two neighbouring versions work side by side. The tables see to the other direction: migrations add
columns that have a default in the database, and remove nothing that the version before still uses.
"""

from __future__ import annotations

from core.mirroring.object_check import Depth, Imported
from jobs.models import Duty
from mirrors.models import Mirror

_KNOWN = {"state": set(Mirror.State.values), "depth": set(Depth), "imported": set(Imported)}


def beyond_us(duty: Duty) -> str:
    """Why a duty is left to a newer version; "" when we understand its mirror."""
    mirror = Mirror.objects.filter(pk=duty.subject).values(*_KNOWN).first()
    strange = [name for name, value in (mirror or {}).items() if value not in _KNOWN[name]]
    return f"the mirror's {strange[0]} '{mirror[strange[0]]}' is a newer version's" if mirror and strange else ""
