"""The replication API over HTTP."""

from __future__ import annotations

import re
import uuid
from typing import IO, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.util import Retry

from lakemirror import __version__
from lakemirror.errors import NotThere, Problem, Unreachable, problem_of
from lakemirror.settings import Settings

CONNECT_SECONDS, READ_SECONDS = 5, 60
DOWNLOAD_SECONDS, PIECE_BYTES = 3600, 1 << 16
"""A table may be long in the making: so long nothing of it may come."""
PAGE = 100
RETRIES = Retry(
    total=2,
    read=1,
    backoff_factor=0.5,
    allowed_methods=("GET", "POST"),  # a POST has a key by which the server knows it again
    respect_retry_after_header=False,
)
_SYSTEMS_WORDS = re.compile(r"\[Errno -?\d+\] ([^'\")>]+)")


class Api:
    """Calls with an access key. Whatever goes wrong is a Problem with the API's own words, if it had any."""

    def __init__(self, settings: Settings, base: str) -> None:
        self.url, self._base = settings.url, base
        self._session = requests.Session()
        self._session.auth = HTTPBasicAuth(settings.access_key_id.encode(), settings.secret_access_key.encode())
        self._session.headers.update({"Accept": "application/json", "User-Agent": f"lakemirror/{__version__}"})
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=RETRIES))

    def always(self, **query: str) -> None:
        """Say this with every call; what is "" goes without saying."""
        self._session.params = {name: value for name, value in query.items() if value}

    def get(self, path: str, **query: Any) -> Any:
        """The answer to a question."""
        return self.get_with_tag(path, **query)[0]

    def get_with_tag(self, path: str, **query: Any) -> tuple[Any, str]:
        """The same, and the tag of what was seen, "" if it has none."""
        return self._call("GET", path, params={name: value for name, value in query.items() if value})

    def pages(self, path: str, most: int | None = None, **query: Any) -> dict[str, Any]:
        """All pages of a list as if they were one, or its first `most` results."""
        results: list[Any] = []
        after = ""
        while True:
            remaining = PAGE if most is None else most - len(results)
            page = self.get(path, after=after, amount=remaining if remaining < PAGE else None, **query)
            results += page["results"]
            pagination = page["pagination"]
            if not pagination["has_more"] or len(results) == most:
                return {**page, "pagination": pagination | {"results": len(results)}, "results": results}
            after = pagination["next_offset"]

    def download(self, path: str, to: IO[bytes], **query: str) -> None:
        """Write a table to a file as it comes. Unreachable if it breaks off: then what was written is not all."""
        answer = self._send(
            "GET",
            path,
            seconds=DOWNLOAD_SECONDS,
            params={"format": "csv", **query},
            headers={"Accept": "text/csv"},
            stream=True,
        )
        try:
            if not answer.ok or not answer.headers.get("Content-Type", "").startswith("text/csv"):
                self._read(answer)
                raise self._no_answer(answer)
            for piece in answer.iter_content(PIECE_BYTES):
                to.write(piece)
        except requests.RequestException as error:
            raise Unreachable(f"{self.url} closed the connection: {_why(error)}") from None

    def patch(self, path: str, body: Any, tag: str = "") -> Any:
        """The answer to a change; with a `tag`, only of what was seen with it."""
        return self._call("PATCH", path, json=body, headers={"If-Match": tag} if tag else {})[0]

    def post(self, path: str, body: Any = None) -> Any:
        """The answer to an order. It may be sent twice, and is carried out once."""
        return self._call("POST", path, json=body or {}, headers={"Idempotency-Key": str(uuid.uuid4())})[0]

    def put(self, path: str, body: Any, tag: str = "") -> None:
        """Have something be as the body says, if it is still what the tag was given for; to send it twice changes
        nothing more."""
        self._call("PUT", path, json=body, headers={"If-Match": tag} if tag else {})

    def delete(self, path: str, tag: str = "") -> None:
        """Have something deleted, if it is still what the tag was given for."""
        self._call("DELETE", path, headers={"If-Match": tag} if tag else {})

    def _call(self, method: str, path: str, **more: Any) -> tuple[Any, str]:
        """The answer, None where there is nothing to say, and its tag."""
        return self._read(self._send(method, path, **more))

    def _send(self, method: str, path: str, *, seconds: int = READ_SECONDS, **more: Any) -> requests.Response:
        try:
            return self._session.request(
                method,
                f"{self.url}{self._base}{path}",
                timeout=(CONNECT_SECONDS, seconds),
                allow_redirects=False,
                **more,
            )
        except requests.RequestException as error:
            raise Unreachable(f"{self.url} can't be reached: {_why(error)}") from None

    def _read(self, answer: requests.Response) -> tuple[Any, str]:
        if answer.ok and not answer.content:
            return None, ""
        body = _json_of(answer)
        if answer.is_redirect:
            raise Unreachable(f"{self.url} redirects to {answer.headers['Location']}: is that the url?")
        if body is None:
            raise self._no_answer(answer)
        if not answer.ok:
            raise problem_of(answer.status_code)(_message(answer, body if isinstance(body, dict) else {}))
        return body, answer.headers.get("ETag", "")

    def _no_answer(self, answer: requests.Response) -> Problem:
        """Something answered that doesn't speak as LakeMirror does: another server, or a proxy in front of it."""
        text = f"{self.url} answers {answer.status_code} {answer.reason}, not as LakeMirror does: is that the url?"
        kind = problem_of(answer.status_code) if answer.status_code >= 400 else Unreachable
        return Unreachable(text) if kind is NotThere else kind(text)


def _json_of(answer: requests.Response) -> Any:
    """The body of an answer, an object or a text; None when it is none."""
    try:
        body = answer.json()
    except requests.exceptions.JSONDecodeError:
        return None
    return body if isinstance(body, dict | str) else None


def _message(answer: requests.Response, body: dict[str, Any]) -> str:
    """What the API says, with its hint."""
    message = str(body.get("message") or f"the answer was {answer.status_code} {answer.reason}")
    hint = str(body.get("hint") or "")
    return message if hint in message else f"{message.rstrip('.')}. {hint}"


def _why(error: requests.RequestException) -> str:
    """The libraries' nested errors as a few words."""
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate can't be trusted"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS} s"
    if isinstance(error, requests.exceptions.ReadTimeout):
        return f"no answer within {READ_SECONDS} s"
    match = _SYSTEMS_WORDS.search(str(error))
    return match[1] if match else "the connection was dropped"
