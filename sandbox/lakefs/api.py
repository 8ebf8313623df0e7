"""The HTTP side: /api/v1 as lakefs-sdk calls it. Verbs raise, and one place here turns that into statuses."""

from __future__ import annotations

import hmac
import logging
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException

from core.types import Commit
from sandbox.lakefs import answers, branches, commits, repositories, retention
from sandbox.lakefs.commits import Conflict
from sandbox.lakefs.errors import Refused, not_found
from sandbox.lakefs.object_routes import object_routes
from sandbox.lakefs.refs import log, resolve, resolve_commit
from sandbox.lakefs.requests_in import Body, amount, flag, text
from sandbox.lakefs.server import USER, Server

OPEN = ("/api/v1/healthcheck", "/api/v1/setup_lakefs", "/_health")
logger = logging.getLogger(__name__)


def make_app(server: Server, *, access_key_id: str, secret_access_key: str) -> Flask:
    """The WSGI application of one installation."""
    app = Flask(__name__)
    app.url_map.merge_slashes = False
    for routes in (_service(server), _repositories(server), _branches(server), _commits(server), _tags(server)):
        app.register_blueprint(routes)
    app.register_blueprint(object_routes(server, access_key_id))
    _guard(app, access_key_id, secret_access_key)
    _errors(app)
    return app


def _guard(app: Flask, access_key_id: str, secret: str) -> None:
    expected = f"{access_key_id}:{secret}".encode()

    @app.before_request
    def authenticate() -> Response | None:
        if request.path in OPEN or not request.path.startswith("/api/"):
            return None
        auth = request.authorization
        said = f"{auth.username}:{auth.password}" if auth and auth.type == "basic" else ""
        if hmac.compare_digest(said.encode(), expected):
            return None
        return answers.send({"message": "error authenticating request"}, 401)

    @app.after_request
    def number(answer: Response) -> Response:
        answer.headers["X-Request-Id"] = str(uuid.uuid4())
        return answer


def _errors(app: Flask) -> None:
    @app.errorhandler(Refused)
    def refused(error: Refused) -> Response:
        return answers.send({"message": error.message}, error.status)

    @app.errorhandler(Conflict)
    def conflict(_: Conflict) -> Response:
        return answers.send({"reference": ""}, 409)

    @app.errorhandler(HTTPException)
    def unknown(error: HTTPException) -> Response:
        if error.code in (404, 405):
            return answers.send({"message": "invalid API endpoint"}, 404)
        return answers.send({"message": error.description or error.name}, error.code or 500)

    @app.errorhandler(Exception)
    def broken(error: Exception) -> Response:
        logger.exception("%s %s", request.method, request.path)
        return answers.send({"message": f"internal server error: {error!r}"}, 500)


def _service(server: Server) -> Blueprint:
    routes = Blueprint("service", __name__)

    @routes.get("/_health")
    def alive() -> Response:
        return answers.plain("alive!", 200)

    @routes.get("/api/v1/healthcheck")
    def healthcheck() -> Response:
        return answers.nothing()

    @routes.get("/api/v1/setup_lakefs")
    def setup() -> Response:
        return answers.send({"comm_prefs_missing": True, "login_config": answers.LOGIN, "state": "initialized"})

    @routes.get("/api/v1/config")
    def config() -> Response:
        parts = {
            "capabilities_config": {},
            "storage_config": answers.STORAGE,
            "storage_config_list": [],
            "ui_config": {},
            "version_config": answers.VERSION_CONFIG,
        }
        return answers.send(parts)

    @routes.get("/api/v1/config/version")
    def version() -> Response:
        return answers.send(answers.VERSION_CONFIG)

    @routes.get("/api/v1/config/storage")
    def storage() -> Response:
        return answers.send(answers.STORAGE)

    @routes.get("/api/v1/user")
    def user() -> Response:
        return answers.send({"user": {"creation_date": 0, "email": "", "friendly_name": "", "id": USER}})

    return routes


def _repositories(server: Server) -> Blueprint:
    routes = Blueprint("repositories", __name__, url_prefix="/api/v1/repositories")

    @routes.post("")
    def create() -> Response:
        body = Body("RepositoryCreation")
        bare = flag("bare")
        made = repositories.repository_create(
            server,
            name=body.get("name", str),
            storage_namespace=body.get("storage_namespace", str),
            default_branch=body.get("default_branch", str, "") or "main",
            read_only=body.get("read_only", bool, False),
            bare=bare,
        )
        shape = answers.repository(made)
        if bare:  # lakeFS leaves the flag out of this answer
            del shape["read_only"]
        return answers.send(shape, 201)

    @routes.get("")
    def listing() -> Response:
        with server.lock:
            found = sorted(server.repositories.items())
        prefix, after = text("prefix"), text("after")
        shown = (repo for name, repo in found if name.startswith(prefix) and name > after)
        return answers.page(shown, amount(), answers.repository, lambda repo: repo.id)

    @routes.get("/<repo>")
    def get(repo: str) -> Response:
        return answers.send(answers.repository(server.repository(repo)))

    @routes.delete("/<repo>")
    def delete(repo: str) -> Response:
        repositories.repository_delete(server, repo, force=flag("force"))
        return answers.nothing()

    @routes.get("/<repo>/metadata")
    def metadata(repo: str) -> Response:
        return answers.send(server.repository(repo).metadata)

    @routes.post("/<repo>/metadata")
    def set_metadata(repo: str) -> Response:
        values = Body("RepositoryMetadataSet").texts("metadata")
        server.writable(repo, flag("force")).metadata.update(values)
        return answers.nothing()

    @routes.get("/<repo>/settings/branch_protection")
    @routes.get("/<repo>/branch_protection")
    def protection(repo: str) -> Response:
        server.repository(repo)
        return answers.send([])

    @routes.get("/<repo>/settings/gc_rules")
    @routes.get("/<repo>/gc/rules")
    def gc_rules(repo: str) -> Response:
        return answers.send(retention.rules(server, repo))

    @routes.put("/<repo>/settings/gc_rules")
    @routes.post("/<repo>/gc/rules")
    def set_gc_rules(repo: str) -> Response:
        body = Body("GarbageCollectionRules")
        retention.set_rules(server, repo, body.get("default_retention_days", int), body.get("branches", list))
        return answers.nothing()

    @routes.delete("/<repo>/settings/gc_rules")
    @routes.delete("/<repo>/gc/rules")
    def delete_gc_rules(repo: str) -> Response:
        retention.delete_rules(server, repo)
        return answers.nothing()

    return routes


def _branches(server: Server) -> Blueprint:
    routes = Blueprint("branches", __name__, url_prefix="/api/v1/repositories/<repo>/branches")

    @routes.get("")
    def listing(repo: str) -> Response:
        hidden, prefix, after = flag("show_hidden"), text("prefix"), text("after")
        with server.lock:
            found = sorted(server.repository(repo).branches.items())
            shown = [
                (name, branch.commit_id)
                for name, branch in found
                if name.startswith(prefix) and name > after and (hidden or not branch.hidden)
            ]
        return answers.page(shown, amount(), answers.ref, lambda pair: pair[0])

    @routes.post("")
    def create(repo: str) -> Response:
        body = Body("BranchCreation")
        commit_id = branches.branch_create(
            server,
            repo,
            name=body.get("name", str),
            source=body.get("source", str),
            hidden=body.get("hidden", bool, False),
            force=body.get("force", bool, False),
        )
        return answers.plain(commit_id, 201)

    @routes.get("/<branch>")
    def get(repo: str, branch: str) -> Response:
        return answers.send(answers.ref((branch, server.repository(repo).branch(branch).commit_id)))

    @routes.delete("/<branch>")
    def delete(repo: str, branch: str) -> Response:
        branches.branch_delete(server, repo, branch, force=flag("force"))
        return answers.nothing()

    @routes.put("/<branch>")
    def reset(repo: str, branch: str) -> Response:
        body = Body("ResetCreation")
        branches.branch_reset(
            server,
            repo,
            branch,
            kind=body.choice("type", "object", "common_prefix", "reset"),
            path=body.get("path", str, ""),
            force=body.get("force", bool, False),
        )
        return answers.nothing()

    @routes.put("/<branch>/hard_reset")
    def hard_reset(repo: str, branch: str) -> Response:
        branches.branch_hard_reset(server, repo, branch, ref=text("ref", required=True), force=flag("force"))
        return answers.nothing()

    @routes.get("/<branch>/diff")
    def diff(repo: str, branch: str) -> Response:
        found = commits.uncommitted(server, repo, branch)
        return _changes(found)

    return routes


def _commits(server: Server) -> Blueprint:
    routes = Blueprint("commits", __name__, url_prefix="/api/v1/repositories/<repo>")

    @routes.post("/branches/<branch>/commits")
    def create(repo: str, branch: str) -> Response:
        body = Body("CommitCreation")
        made = commits.commit_create(
            server,
            repo,
            branch,
            message=body.get("message", str),
            metadata=body.texts("metadata"),
            date=body.optional_int("date"),
            allow_empty=body.get("allow_empty", bool, False),
            force=body.get("force", bool, False),
        )
        return answers.send(answers.commit(made), 201)

    @routes.post("/commits")
    def record(repo: str) -> Response:
        body = Body("CommitRecordCreation")
        commits.commit_record_create(server, repo, _record(body), force=body.get("force", bool, False))
        return answers.nothing()

    @routes.get("/commits/<ref>")
    def get(repo: str, ref: str) -> Response:
        with server.lock:
            return answers.send(answers.commit(resolve_commit(server.repository(repo), ref, says="commit ")))

    @routes.get("/refs/<ref>/commits")
    def history(repo: str, ref: str) -> Response:
        after, first_parent, most = text("after"), flag("first_parent"), amount()
        with server.lock:
            repository = server.repository(repo)
            start = resolve(repository, ref, says="ref: ").commit_id
            walk: Iterator[Commit] = log(repository, start, first_parent=first_parent)
            if after:  # an id that is not on this log any more gives an empty page, as lakeFS does
                last = resolve(repository, after, says="from ref: ").commit_id
                next((commit for commit in walk if commit.id == last), None)
            walk = _until(walk, text("stop_at"))
            if paths := _wanted_paths():
                walk = commits.touching(server, repository, walk, paths)
            if flag("limit"):
                return answers.whole_page(list(islice(walk, most)), False, answers.commit, lambda commit: commit.id)
            return answers.page(walk, most, answers.commit, lambda commit: commit.id)

    @routes.post("/refs/<source>/merge/<destination>")
    def merge(repo: str, source: str, destination: str) -> Response:
        body = Body("Merge")
        made = commits.merge(
            server,
            repo,
            source,
            destination,
            message=body.get("message", str, ""),
            metadata=body.texts("metadata"),
            strategy=body.get("strategy", str, ""),
            force=body.get("force", bool, False),
        )
        return answers.send({"reference": made.id})

    @routes.get("/refs/<left>/diff/<right>")
    def diff(repo: str, left: str, right: str) -> Response:
        return _changes(commits.compare(server, repo, left, right, two_dot=text("type") == "two_dot"))

    @routes.get("/metadata/meta_range/<metarange>")
    def meta_range(repo: str, metarange: str) -> Response:
        server.repository(repo)
        return answers.send({"location": f"_lakefs/{metarange}"})

    return routes


def _until(walk: Iterator[Commit], stop_at: str) -> Iterator[Commit]:
    for commit in walk:
        yield commit
        if commit.id == stop_at:
            return


def _wanted_paths() -> list[tuple[bytes, bool]]:
    """The log's filters: (path, is it a prefix?)."""
    objects = [(path.encode(), False) for path in request.args.getlist("objects")]
    return objects + [(path.encode(), True) for path in request.args.getlist("prefixes")]


def _record(body: Body) -> Commit:
    parents: list[Any] = body.get("parents", list)
    return Commit(
        id=body.get("commit_id", str),
        version=body.get("version", int),
        committer=body.get("committer", str),
        message=body.get("message", str),
        metarange_id=body.get("metarange_id", str),
        creation_date=body.get("creation_date", int),
        parents=tuple(str(parent) for parent in parents),
        metadata=body.texts("metadata"),
        generation=body.get("generation", int),
    )


def _changes(found: list[commits.Change]) -> Response:
    prefix, after = text("prefix").encode(), text("after").encode()
    shown = [item for item in found if item[1].startswith(prefix) and item[1] > after]
    return answers.page(shown, amount(), answers.change, lambda item: item[1].decode("utf-8", "replace"))


def _tags(server: Server) -> Blueprint:
    routes = Blueprint("tags", __name__, url_prefix="/api/v1/repositories/<repo>/tags")

    @routes.get("")
    def listing(repo: str) -> Response:
        prefix, after = text("prefix"), text("after")
        with server.lock:
            found = sorted(server.repository(repo).tags.items())
        shown = [pair for pair in found if pair[0].startswith(prefix) and pair[0] > after]
        return answers.page(shown, amount(), answers.ref, lambda pair: pair[0])

    @routes.post("")
    def create(repo: str) -> Response:
        body = Body("TagCreation")
        name = body.get("id", str)
        commit_id = branches.tag_create(
            server, repo, name=name, ref=body.get("ref", str), force=body.get("force", bool, False)
        )
        return answers.send(answers.ref((name, commit_id)), 201)

    @routes.get("/<tag>")
    def get(repo: str, tag: str) -> Response:
        tags = server.repository(repo).tags
        if tag not in tags:
            raise not_found("tag ")
        return answers.send(answers.ref((tag, tags[tag])))

    @routes.delete("/<tag>")
    def delete(repo: str, tag: str) -> Response:
        branches.tag_delete(server, repo, tag, force=flag("force"))
        return answers.nothing()

    return routes
