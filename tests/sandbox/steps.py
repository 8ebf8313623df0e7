"""Requests to any lakeFS, good and bad, whose answers two servers can be compared by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

REPO = "steps"
R = f"/repositories/{REPO}"


class Sender(Protocol):
    """Sends a request; gives what the answer is compared by, and its body."""

    namespace: str

    def send(self, method: str, path: str, **options: Any) -> tuple[Any, Any]: ...


class Told:
    """Numbers the answers."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.steps: list[tuple[str, Any]] = []

    def __call__(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        if json is not None:
            options["json"] = json
        told, body = self._sender.send(method, path, **options)
        self.steps.append((f"{len(self.steps)} {method} {path} {json or ''} {options.get('params', '')}", told))
        return body

    def upload(self, branch: str, path: str, body: bytes = b"x") -> None:
        """Stages an object."""
        headers = {"Content-Type": "application/octet-stream"}
        self("POST", f"{R}/branches/{branch}/objects", params={"path": path}, data=body, headers=headers)


def all_steps(sender: Sender) -> Iterator[tuple[str, Any]]:
    """All steps in order: (what was asked, what the answer is compared by)."""
    told = Told(sender)
    for part in (_repository, _objects, _staging, _branches, _merges, _references, _tags, _resets, _records):
        part(told, sender.namespace)
    # The ids of commits differ between two servers: they may not be part of a step's name.
    yield from ((f"{number}", answer) for number, (_, answer) in enumerate(told.steps))


def _repository(told: Told, namespace: str) -> None:
    told("POST", "/repositories", {"name": REPO, "storage_namespace": namespace})
    told("POST", "/repositories", {"name": REPO, "storage_namespace": namespace})
    told("POST", "/repositories", {"name": "steps-2", "storage_namespace": namespace})
    told("POST", "/repositories", {"name": "steps-3", "storage_namespace": "s3://no-such-bucket/x"})
    told("POST", "/repositories", {"name": "x", "storage_namespace": namespace + "/x"})
    told("POST", "/repositories", {"name": "steps-4", "storage_namespace": "nonsense"})
    told("POST", "/repositories", {"name": "steps-4"})
    told("POST", "/repositories", data=b"{bad", headers={"Content-Type": "application/json"})
    told("GET", R)
    told("GET", "/repositories/nope")
    told("GET", "/repositories", params={"amount": 5000})
    told("GET", "/repositories", params={"amount": "x"})
    told("GET", "/repositories", params={"prefix": REPO})
    told("GET", "/nope")
    told("GET", "/config/version")
    told("GET", f"{R}/metadata")


def _objects(told: Told, namespace: str) -> None:
    for path in ("a/1", "a/2", "b", "multi"):
        told.upload("main", path)
    told("POST", f"{R}/branches/main/objects", data=b"x")
    told(
        "POST", f"{R}/branches/main/objects", params={"path": "part"}, files={"content": ("f", b"hello", "text/plain")}
    )
    read = f"{R}/refs/main/objects"
    for params in ({}, {"delimiter": "/"}, {"delimiter": "/", "amount": 1}, {"delimiter": "/", "after": "a/"}):
        told("GET", f"{read}/ls", params=params)
    for params in ({"prefix": "a/"}, {"after": "a/1", "amount": 2}, {"amount": 0}, {"amount": -1}, {"prefix": "zz"}):
        told("GET", f"{read}/ls", params=params)
    for path in ("a/1", "nope"):
        told("GET", read, params={"path": path})
        told("GET", f"{read}/stat", params={"path": path})
    told("GET", read, params={"path": "part"}, headers={"Range": "bytes=1-2"})
    told("GET", f"{R}/refs/nope/objects/ls")
    told("GET", f"{R}/refs/nope/objects/stat", params={"path": "a/1"})


def _staging(told: Told, namespace: str) -> None:
    told("GET", f"{R}/branches/main/diff")
    told("GET", f"{R}/branches/nope/diff")
    told("POST", f"{R}/branches/main/commits", {"message": "one"})
    told("POST", f"{R}/branches/main/commits", {"message": "none"})
    told("POST", f"{R}/branches/main/commits", {})
    objects = f"{R}/branches/main/objects"
    for path in ("nope", "a/1", "a/1"):
        told("DELETE", objects, params={"path": path})
    told.upload("main", "b", b"new")
    told("GET", f"{R}/branches/main/diff")
    told("GET", f"{R}/branches/main/diff", params={"amount": 1})
    told("POST", f"{objects}/delete", {"paths": ["a/2", "zz"]})
    for reset in ({"type": "object", "path": "b"}, {"type": "common_prefix", "path": "a/"}, {"type": "bogus"}):
        told("PUT", f"{R}/branches/main", reset)
        told("GET", f"{R}/branches/main/diff")
    told.upload("main", "b")  # the same content once more is no change
    told("POST", f"{R}/branches/main/commits", {"message": "same"})
    told("PUT", f"{R}/branches/main", {"type": "reset"})
    told("PUT", f"{R}/branches/nope", {"type": "reset"})


def _branches(told: Told, namespace: str) -> None:
    for body in (
        {"name": "dev", "source": "main"},
        {"name": "dev", "source": "main"},
        {"name": "hid", "source": "main", "hidden": True},
        {"name": "x", "source": "nope"},
        {"name": "x"},
        {"name": "-x", "source": "main"},
        {"name": "a.b", "source": "main"},
        {"name": "a/b", "source": "main"},
    ):
        told("POST", f"{R}/branches", body)
    for params in ({}, {"show_hidden": "true"}, {"prefix": "m"}, {"amount": 1}, {"after": "dev"}):
        told("GET", f"{R}/branches", params=params)
    for name in ("hid", "nope"):
        told("GET", f"{R}/branches/{name}")
    for name in ("main", "nope"):
        told("DELETE", f"{R}/branches/{name}")


def _merges(told: Told, namespace: str) -> None:
    told("POST", f"{R}/refs/dev/merge/main", {})
    told.upload("dev", "a/3")
    told.upload("dev", "b", b"theirs")
    told("POST", f"{R}/branches/dev/commits", {"message": "dev", "metadata": {"k": "v"}})
    for left, right, params in (
        ("main", "dev", {}),
        ("main", "dev", {"type": "two_dot"}),
        ("dev", "main", {}),
        ("dev", "main", {"type": "two_dot"}),
        ("main", "nope", {}),
    ):
        told("GET", f"{R}/refs/{left}/diff/{right}", params=params)
    told.upload("main", "b", b"ours")
    told("POST", f"{R}/refs/dev/merge/main", {"message": "dirty"})
    told("POST", f"{R}/branches/main/commits", {"message": "main"})
    told("POST", f"{R}/refs/dev/merge/main", {"message": "conflict"})
    told("GET", f"{R}/refs/main/diff/dev")
    told("POST", f"{R}/refs/dev/merge/main", {"strategy": "bogus"})
    told("POST", f"{R}/refs/dev/merge/main", {"message": "m", "strategy": "source-wins"})
    told("POST", f"{R}/refs/dev/merge/main", {"message": "again"})
    told("POST", f"{R}/refs/nope/merge/main", {})
    told("POST", f"{R}/refs/dev/merge/nope", {})
    told("GET", f"{R}/refs/main/objects", params={"path": "b"})


def _references(told: Told, namespace: str) -> None:
    told("GET", f"{R}/refs/main/commits")
    for params in ({"amount": 2}, {"first_parent": "true"}, {"limit": "true", "amount": 2}, {"after": "zzzzzz"}):
        told("GET", f"{R}/refs/main/commits", params=params)
    for params in ({"prefixes": "a/"}, {"objects": "b"}):
        told("GET", f"{R}/refs/main/commits", params=params)
    for ref in ("main~1", "main^2", "main~0", "main@", "main~99", "nope~1"):
        told("GET", f"{R}/refs/{ref}/objects/stat", params={"path": "b"})
    for ref in ("main", "ffff", "f" * 64):
        told("GET", f"{R}/commits/{ref}")


def _tags(told: Told, namespace: str) -> None:
    for body in (
        {"id": "v1", "ref": "main"},
        {"id": "v1", "ref": "main"},
        {"id": "v1", "ref": "dev", "force": True},
        {"id": "v2", "ref": "nope"},
        {"id": "v 2", "ref": "main"},
        {"id": "dev", "ref": "main"},
    ):
        told("POST", f"{R}/tags", body)
    told("POST", f"{R}/branches", {"name": "v1", "source": "main"})
    told("GET", f"{R}/tags")
    for name in ("v1", "nope"):
        told("GET", f"{R}/tags/{name}")
        told("DELETE", f"{R}/tags/{name}")


def _resets(told: Told, namespace: str) -> None:
    told.upload("main", "staged")
    reset = f"{R}/branches/main/hard_reset"
    for params in ({"ref": "dev"}, {"ref": "dev", "force": "true"}, {}, {"ref": "f" * 64}):
        told("PUT", reset, params=params)
    told("GET", f"{R}/branches/main/diff")
    told("PUT", f"{R}/branches/nope/hard_reset", params={"ref": "dev"})
    told("GET", f"{R}/branches/main")


def _records(told: Told, namespace: str) -> None:
    record = {"commit_id": "zz", "version": 1, "committer": "", "message": "m", "metarange_id": "", "generation": 1}
    record |= {"creation_date": 1, "parents": [], "metadata": {}}
    told("POST", f"{R}/commits", record)
    told("POST", f"{R}/commits", {"commit_id": "zz"})
    told("POST", "/repositories/nope/commits", record)
    told("DELETE", "/repositories/nope")
    told("DELETE", R)
    told("DELETE", R)
