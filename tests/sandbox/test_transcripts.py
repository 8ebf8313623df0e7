"""The stand-in answers as real lakeFS servers did: status, shape, message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.recorded import (
    Exchange,
    TwoServers,
    ids_in,
    metadata_files,
    repository_record,
    shape,
    transcript,
    translated,
)

HEAD_THEN = {"main": "33d1216cadc29cabe54609fafe12edb8352fe7a1666bccf7a0bbbec328c6d19e", "dev": "8f43fd11"}


@pytest.fixture
def servers() -> TwoServers:
    return TwoServers()


def record_of(commit: dict[str, Any]) -> dict[str, Any]:
    """A commit of the log as CreateCommitRecord takes it."""
    names = {"id": "commit_id", "meta_range_id": "metarange_id"}
    return {names.get(key, key): value for key, value in commit.items()}


def seed_source(servers: TwoServers) -> None:
    """The source as it was when the mirror was recorded: `lake` without the commits made later."""
    post = servers.clients["source"].post
    auth = {"auth": ("AKIALAKEMIRRORDEMO", "lakemirror-demo-secret")}
    made = {"name": "lake", "storage_namespace": "s3://src-bucket/lake", "default_branch": "main"}
    assert post("/api/v1/repositories?bare=true", json=made, **auth).status_code == 201
    for commit in repository_record()["commits"]:
        if commit["generation"] <= 5:
            answer = post("/api/v1/repositories/lake/commits", json=record_of(commit), **auth)
            assert answer.status_code == 204
    for name, source in HEAD_THEN.items():
        answer = post("/api/v1/repositories/lake/branches", json={"name": name, "source": source}, **auth)
        assert answer.status_code == 201


def replicate(servers: TwoServers) -> None:
    """The bucket replication of the recording: metadata, and the one object that is read."""
    for name, content in metadata_files():
        servers.backend.store("dst-bucket", f"lake/_lakefs/{name}", content)
    servers.backend.store("dst-bucket", "lake/data/ft6qeuhksduetnsru05g/dc0lnbpksduetnsru0fg", b"m")


def same_words(exchange: Exchange, body: Any) -> bool:
    recorded = exchange["response"]
    if isinstance(recorded, dict) and "message" in recorded and "generation" not in recorded:
        return bool(recorded["message"] == body["message"])
    return True


def test_a_source_answers_as_recorded(servers: TwoServers) -> None:
    ids: dict[str, str] = {}
    for number, exchange in enumerate(transcript("source")):
        answer = servers.send(translated(exchange, ids))
        where = f"exchange {number}: {exchange['method']} {exchange['path']}"
        assert answer.status == exchange["status"], (where, answer.body)
        assert shape(answer.body) == shape(exchange["response"]), where
        assert same_words(exchange, answer.body), (where, answer.body)
        assert answer.content_type == exchange["headers"].get("Content-Type", ""), where
        ids |= dict(zip(ids_in(exchange["response"]), ids_in(answer.body), strict=True))


def test_a_destination_answers_the_mirror_protocol_to_the_byte(servers: TwoServers) -> None:
    seed_source(servers)
    servers.now = 1795251152.5
    for number, exchange in enumerate(transcript("mirror-protocol")):
        note = exchange.get("note", "")
        if note == "after replication":
            replicate(servers)
        auth = {"wrong credentials": ("AKIA", "wrong"), "no credentials": None}.get(note, ("",))
        answer = servers.send(exchange) if auth == ("",) else servers.send(exchange, auth=auth)  # type: ignore[arg-type]
        where = f"exchange {number}: {exchange['method']} {exchange['path']}"
        assert answer.status == exchange["status"], (where, answer.body)
        if note == "forced write" or "presign" in exchange["query"]:
            assert shape(answer.body) == shape(exchange["response"]), where
        else:
            assert answer.body == exchange["response"], where
        assert answer.content_type == exchange["headers"].get("Content-Type", ""), where
        if "Etag" in exchange["headers"]:
            assert answer.headers["Etag"] == exchange["headers"]["Etag"]


def test_failover_on_a_writable_repository_answers_as_recorded(servers: TwoServers) -> None:
    seed_source(servers)
    replicate(servers)
    ids: dict[str, str] = {}
    for number, exchange in enumerate(transcript("failover")):
        answer = servers.send(translated(exchange, ids))
        where = f"exchange {number}: {exchange['method']} {exchange['path']}"
        assert answer.status == exchange["status"], (where, answer.body)
        assert shape(answer.body) == shape(exchange["response"]), where
        ids |= dict(zip(ids_in(exchange["response"]), ids_in(answer.body), strict=True))
