"""Webhooks: the files `_lakefs_actions/*.yaml` of a commit say which events go where."""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import requests
import yaml

from graveler.entries import Entry
from sandbox.lakefs.errors import Refused
from sandbox.lakefs.model import Repository
from sandbox.lakefs.server import Event, Server

FOLDER = b"_lakefs_actions/"
SECONDS = {"s": 1, "m": 60, "h": 3600}
VARIABLE = re.compile(r"\{\{ ?ENV\.(.*?) ?\}\}")
PREFIX = "LAKEFSACTION_"
"""Of the environment hooks see what begins like this: lakeFS's own default."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of an action that an event calls."""

    action: str
    id: str
    url: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    timeout: float


class Actions:
    """Sends the events of writable repositories, in order per server, without holding up the request."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._troubles: dict[str, str] = {}
        self._sender = ThreadPoolExecutor(4, thread_name_prefix="webhook")
        self._sessions = threading.local()
        server.notify = self.notify
        server.ask = self.ask

    def notify(self, repository: Repository, metarange_id: str, event: Event) -> None:
        """Sends an event to the hooks that the commit behind `metarange_id` names."""
        if repository.read_only or not metarange_id:
            return
        stamped = {"event_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "repository_id": repository.id}
        for hook in self._hooks(repository, metarange_id, event):
            body = {"event_type": event["event_type"], "action_name": hook.action, "hook_id": hook.id}
            self._sender.submit(self._send, hook, body | stamped | event)

    def ask(self, repository: Repository, metarange_id: str, event: Event) -> None:
        """Asks the hooks that the commit behind `metarange_id` names, one after the other, and waits. Raises the 412
        of one that refuses, or doesn't answer."""
        if repository.read_only or not metarange_id:
            return
        stamped = {"event_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "repository_id": repository.id}
        for hook in self._hooks(repository, metarange_id, event):
            body = {"event_type": event["event_type"], "action_name": hook.action, "hook_id": hook.id} | stamped | event
            if trouble := self._refusal(hook, body):
                raise Refused(412, _aborted(event, hook, trouble))

    def _refusal(self, hook: Hook, body: Event) -> str:
        try:
            answer = self._session().post(
                hook.url, params=hook.query, headers=hook.headers, json=body, timeout=hook.timeout
            )
        except requests.RequestException as problem:
            return f'Post "{hook.url}": {type(problem).__name__}'
        return "" if answer.ok else f"webhook request failed (status code: {answer.status_code})"

    def _hooks(self, repository: Repository, metarange_id: str, event: Event) -> list[Hook]:
        """All that the event calls; none where one of the files is wrong, as with lakeFS."""
        try:
            files = (self._server.body_of(repository, entry) for entry in self._files(repository, metarange_id))
            event_type, branch = event["event_type"], event["branch_id"]
            return [hook for file in files for hook in hooks_of(yaml.safe_load(file), event_type, branch)]
        except (Refused, yaml.YAMLError, KeyError, AttributeError, TypeError, ValueError) as problem:
            logger.warning("actions of %s can't be read: %r", repository.id, problem)
            return []

    def _files(self, repository: Repository, metarange_id: str) -> Iterator[Entry]:
        for entry in self._server.committed(repository).scan(metarange_id, FOLDER):
            if not entry.path.startswith(FOLDER):
                return
            if entry.path.endswith((b".yaml", b".yml")):
                yield entry

    def _send(self, hook: Hook, body: Event) -> None:
        try:
            answer = self._session().post(
                hook.url, params=hook.query, headers=hook.headers, json=body, timeout=hook.timeout
            )
            self._note(hook.url, "" if answer.ok else f"answered {answer.status_code}")
        except requests.RequestException as problem:
            self._note(hook.url, f"no answer ({type(problem).__name__})")

    def _note(self, url: str, trouble: str) -> None:
        """Say it when a receiver begins to fail, not at each event."""
        if trouble and self._troubles.get(url) != trouble:
            logger.warning("webhook %s: %s", url, trouble)
        self._troubles[url] = trouble

    def _session(self) -> requests.Session:
        if not hasattr(self._sessions, "session"):
            self._sessions.session = requests.Session()
            self._sessions.session.trust_env = False
        session: requests.Session = self._sessions.session
        return session


def hooks_of(action: Mapping[Any, Any], event_type: str, branch: str) -> Iterator[Hook]:
    """The webhooks of an action file that an event on a branch calls. Raises ValueError where one needs a variable that
    the environment doesn't have."""
    events = action.get("on", action.get(True)) or {}  # YAML 1.1 reads a bare `on` as true
    if event_type not in events:
        return
    patterns = (events[event_type] or {}).get("branches")
    if patterns and not any(fnmatch.fnmatchcase(branch, pattern) for pattern in patterns):
        return
    for hook in action["hooks"]:
        if hook["type"] == "webhook":
            properties = hook["properties"]
            yield Hook(
                action=action.get("name", ""),
                id=hook["id"],
                url=properties["url"],
                query=_filled(properties.get("query_params") or {}),
                headers=_filled(properties.get("headers") or {}),
                timeout=_seconds(str(properties.get("timeout", "60s"))),
            )


def _filled(values: Mapping[str, Any]) -> dict[str, str]:
    """`{{ ENV.LAKEFSACTION_X }}` stands for the variable of the server's environment; of other variables lakeFS takes
    nothing."""
    return {key: VARIABLE.sub(_value, str(value)) for key, value in values.items()}


def _value(found: re.Match[str]) -> str:
    name = found[1]
    if not name.startswith(PREFIX):
        return ""
    if name not in os.environ:
        raise ValueError(f"{name} is not in the environment")
    return os.environ[name]


def _seconds(text: str) -> float:
    return float(text[:-1]) * SECONDS[text[-1]] if text[-1] in SECONDS else float(text)


def _aborted(event: Event, hook: Hook, trouble: str) -> str:
    """What lakeFS tells the caller of a merge that a hook refused."""
    run = uuid.uuid4().hex[:20]
    return (
        f"update branch {event['branch_id']}: {event['event_type']} hook aborted, run id '{run}': 1 error occurred:\n"
        f"\t* hook run id '0000_0000' failed on action '{hook.action}' hook '{hook.id}': action failed: {trouble}\n\n"
    )
