"""`Sandbox`: the client of the control API, for tests and the demo. Standard library only."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from sandbox.layout import ACCESS_KEY_ID, CONTROL, SECRET_ACCESS_KEY, STATE_FILE, Layout, Region, port_base

CONTROL_VARIABLE = "LAKEMIRROR_SANDBOX_CONTROL"
DEFAULT_FOLDER = Path("var/sandbox")
PATIENCE = 30.0


class SandboxError(Exception):
    """The sandbox refused, or is not there."""


class Sandbox:
    """A running sandbox."""

    access_key_id = ACCESS_KEY_ID
    secret_access_key = SECRET_ACCESS_KEY

    def __init__(self, control_url: str) -> None:
        self.control_url = control_url.rstrip("/")
        self._layout: Layout | None = None

    @classmethod
    def find(cls, folder: Path | None = None) -> Sandbox:
        """The sandbox that runs in `folder`. Without one: that which LAKEMIRROR_SANDBOX_CONTROL names, which runs in
        var/sandbox, or on the usual port."""
        url = os.environ.get(CONTROL_VARIABLE)
        if url and folder is None:
            return cls(url)
        try:
            return cls(Layout.from_json(json.loads(((folder or DEFAULT_FOLDER) / STATE_FILE).read_text())).control_url)
        except FileNotFoundError:
            if folder:
                raise SandboxError(f"no sandbox runs in {folder}") from None
            return cls(f"http://127.0.0.1:{port_base() + CONTROL}")

    # --- where things are -------------------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """Regions, buckets and addresses."""
        if self._layout is None:
            self._layout = Layout.from_json(self.status()["layout"])
        return self._layout

    @property
    def source(self) -> Region:
        """us-east-1."""
        return self.layout.regions[0]

    @property
    def destination(self) -> Region:
        """eu-west-1."""
        return self.layout.regions[1]

    def region(self, name: str) -> Region:
        """A region by its name."""
        return self.layout.region(name)

    # --- replication ------------------------------------------------------------------------------------------------

    def hold(self, pattern: str = "*", *, kind: str = "", count: int = -1, destination: str = "") -> None:
        """Holds back objects whose key matches the glob: the next `count` of a kind (data, range, metarange)."""
        self._rule("hold", pattern, kind, count, destination)

    def lose(self, pattern: str = "*", *, kind: str = "", count: int = -1, destination: str = "") -> None:
        """Loses objects on the way. `release` sends them after all."""
        self._rule("lose", pattern, kind, count, destination)

    def corrupt(
        self, pattern: str = "*", *, kind: str = "", count: int = -1, destination: str = "", silent: bool = False
    ) -> None:
        """Changes a byte on the way; `silent` keeps the ETag. `release` sends the objects again, whole."""
        self._rule("corrupt", pattern, kind, count, destination, silent=silent)

    def release(self, pattern: str = "*", *, kind: str = "", destination: str = "") -> int:
        """Ends the rules that were armed with this pattern (all by default) and sends again what they met."""
        told = {"pattern": pattern, "kind": kind, "destination": destination}
        return int(self.call("POST", "/replication/release", told)["released"])

    def delay(self, seconds: float, *, jitter: float = 0.0) -> None:
        """Delivers `seconds` after the write, plus up to `jitter`; also what waits already."""
        self.call("POST", "/replication/timing", {"delay": seconds, "jitter": jitter})

    def order(self, order: str) -> None:
        """fifo, random, reverse, metadata-first or data-first, among what is due."""
        self.call("POST", "/replication/timing", {"order": order})

    def replicate_deletes(self, yes: bool) -> None:
        """Do deletes reach the other region?"""
        self.call("POST", "/replication/timing", {"deletes": yes})

    def stop(self) -> None:
        """Stops replication in both directions."""
        self.call("POST", "/replication/timing", {"running": False})

    def start(self) -> None:
        """Lets it go on."""
        self.call("POST", "/replication/timing", {"running": True})

    def wait_replicated(self, seconds: float = PATIENCE) -> bool:
        """Waits until everything written so far is delivered or stopped by a rule."""
        return bool(
            self.call("POST", "/replication/wait", {"seconds": seconds}, patience=seconds + PATIENCE)["settled"]
        )

    # --- services ---------------------------------------------------------------------------------------------------

    def server_faults(
        self,
        region: str,
        service: str,
        mode: str,
        *,
        path: str = "*",
        method: str = "",
        seconds: float = 0.0,
        count: int = -1,
    ) -> None:
        """Tells a service (s3, lakefs, "" both) of a region ("" all) to treat requests so: ok, error (500), late-error
        (500 after the work was done), unavailable (503), throttle (429), revoked (the key is not known), denied (403),
        full (507), empty (a listing without anything), hang, refuse (connection closed), slow (by `seconds`), proxy (a
        store answers for what it lacks with what another region has, unless it is asked not to)."""
        told = {"region": region, "service": service, "mode": mode, "path": path, "method": method}
        self.call("POST", "/faults", told | {"seconds": seconds, "left": count})

    def heal(self) -> None:
        """Lifts all faults of the services, ends all replication rules, and lets replication run."""
        self.server_faults("", "", "ok")
        self.release()
        self.start()

    def deny(self, place: str, action: str = "s3:PutObject") -> None:
        """Lets the policy of a bucket refuse an action below `bucket/prefix`, in every region that has the bucket."""
        self.call("POST", "/policy", {"place": place, "action": action})

    def allow(self, bucket: str) -> None:
        """Ends what the policy of a bucket refuses."""
        self.call("POST", "/policy", {"place": bucket, "action": ""})

    # --- the company ------------------------------------------------------------------------------------------------

    def pause_company(self) -> None:
        """No more commits by itself."""
        self.call("POST", "/company/pause")

    def resume_company(self) -> None:
        """Lets it work again."""
        self.call("POST", "/company/resume")

    def company_step(self, count: int = 1) -> list[str]:
        """Lets it do things at once; gives what it did."""
        return list(self.call("POST", "/company/step", {"count": count}, patience=PATIENCE * (1 + count / 10))["done"])

    def bulk_import(
        self,
        region: str,
        repository: str,
        branch: str,
        objects: int,
        *,
        prefix: str = "bulk/",
        size: int = 16,
        replicated: bool = False,
    ) -> str:
        """Many small objects in one commit; gives its id. `replicated`: also in the other region, at once."""
        told: dict[str, Any] = {"region": region, "repository": repository, "branch": branch, "objects": objects}
        told |= {"prefix": prefix, "size": size, "replicated": replicated}
        return str(self.call("POST", "/bulk", told, patience=PATIENCE + objects / 200)["commit"])

    # --- the wire ---------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Everything that the sandbox tells of itself."""
        return self.call("GET", "/status")

    def call(
        self, method: str, path: str, told: dict[str, Any] | None = None, *, patience: float = PATIENCE
    ) -> dict[str, Any]:
        """One request to the control API. Raises SandboxError."""
        body = None if told is None else json.dumps(told).encode()
        request = urllib.request.Request(self.control_url + path, body, {"Content-Type": "application/json"})
        request.method = method
        try:
            with _DIRECT.open(request, timeout=patience) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise SandboxError(json.load(error).get("message", str(error))) from error
        except urllib.error.URLError as error:
            raise SandboxError(f"no sandbox at {self.control_url}: {error.reason}") from error

    def _rule(
        self, action: str, pattern: str, kind: str, count: int, destination: str, *, silent: bool = False
    ) -> None:
        told = {"action": action, "pattern": pattern, "kind": kind, "left": count}
        self.call("POST", "/replication/rules", told | {"destination": destination, "silent": silent})


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
