"""lakeFS over plain HTTP, as much as the company needs: the same on the stand-in and on a real server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import requests

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY

TIMEOUT = 30.0


class LakeFSError(Exception):
    """An answer of 4xx or 5xx."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class LakeFS:
    """One installation. Raises LakeFSError and requests' exceptions. One per thread."""

    def __init__(self, url: str, key: str = ACCESS_KEY_ID, secret: str = SECRET_ACCESS_KEY) -> None:
        self._base = f"{url.rstrip('/')}/api/v1"
        self._session = requests.Session()
        self._session.auth = (key, secret)
        self._session.trust_env = False

    def call(self, method: str, path: str, **options: Any) -> Any:
        """One request; gives JSON, text for other content, None for 204."""
        answer = self._session.request(method, self._base + path, timeout=TIMEOUT, **options)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        if not answer.ok:
            message = answer.json().get("message", "") if is_json else answer.text[:200]
            raise LakeFSError(answer.status_code, message)
        return answer.json() if is_json else (answer.text or None)

    def repository(self, repo: str) -> dict[str, Any]:
        """Raises a 404."""
        found: dict[str, Any] = self.call("GET", f"/repositories/{repo}")
        return found

    def create_repository(self, repo: str, namespace: str) -> None:
        """A writable repository with a branch main."""
        self.call("POST", "/repositories", json={"name": repo, "storage_namespace": namespace})

    def branches(self, repo: str) -> dict[str, str]:
        """Branch to commit id, the first thousand."""
        found = self.call("GET", f"/repositories/{repo}/branches", params={"amount": 1000})
        return {branch["id"]: branch["commit_id"] for branch in found["results"]}

    def head(self, repo: str, branch: str) -> str:
        """The commit that a branch points to."""
        return str(self.call("GET", f"/repositories/{repo}/branches/{_part(branch)}")["commit_id"])

    def commit_record(self, repo: str, commit: str) -> dict[str, Any]:
        """A commit by its id."""
        found: dict[str, Any] = self.call("GET", f"/repositories/{repo}/commits/{commit}")
        return found

    def copy_record(self, repo: str, record: dict[str, Any], *, force: bool) -> None:
        """CreateCommitRecord, of a commit in the form that the log gives."""
        body = {key: record[key] for key in ("version", "committer", "message", "creation_date", "parents", "metadata")}
        body |= {"commit_id": record["id"], "metarange_id": record["meta_range_id"]}
        body |= {"generation": record["generation"], "force": force}
        self.call("POST", f"/repositories/{repo}/commits", json=body)

    def log(self, repo: str, ref: str, amount: int = 100, **params: Any) -> list[dict[str, Any]]:
        """The newest commits of a reference."""
        path = f"/repositories/{repo}/refs/{_part(ref)}/commits"
        return list(self.call("GET", path, params={"amount": amount, **params})["results"])

    def create_branch(self, repo: str, name: str, source: str) -> None:
        """A branch."""
        self.call("POST", f"/repositories/{repo}/branches", json={"name": name, "source": source})

    def delete_branch(self, repo: str, name: str) -> None:
        """Raises 403 for the default branch and 404."""
        self.call("DELETE", f"/repositories/{repo}/branches/{_part(name)}")

    def hard_reset(self, repo: str, branch: str, ref: str) -> None:
        """Points a branch to a commit."""
        self.call("PUT", f"/repositories/{repo}/branches/{_part(branch)}/hard_reset", params={"ref": ref})

    def upload(self, repo: str, branch: str, path: str, body: bytes, content_type: str = "text/csv") -> None:
        """Stages an object."""
        url = f"/repositories/{repo}/branches/{_part(branch)}/objects"
        self.call("POST", url, params={"path": path}, data=body, headers={"Content-Type": content_type})

    def delete(self, repo: str, branch: str, path: str) -> None:
        """Stages the removal of an object."""
        self.call("DELETE", f"/repositories/{repo}/branches/{_part(branch)}/objects", params={"path": path})

    def listing(self, repo: str, ref: str, prefix: str = "", amount: int = 1000) -> list[dict[str, Any]]:
        """Objects with a prefix, the first page."""
        path = f"/repositories/{repo}/refs/{_part(ref)}/objects/ls"
        return list(self.call("GET", path, params={"prefix": prefix, "amount": amount})["results"])

    def commit(self, repo: str, branch: str, message: str, metadata: dict[str, str], **options: Any) -> str:
        """Commits what is staged; gives the commit id."""
        body = {"message": message, "metadata": metadata, **options}
        return str(self.call("POST", f"/repositories/{repo}/branches/{_part(branch)}/commits", json=body)["id"])

    def merge(self, repo: str, source: str, destination: str, message: str, metadata: dict[str, str]) -> str:
        """Merges; where both sides changed a path, the source wins."""
        path = f"/repositories/{repo}/refs/{_part(source)}/merge/{_part(destination)}"
        body = {"message": message, "metadata": metadata, "strategy": "source-wins"}
        return str(self.call("POST", path, json=body)["reference"])


def _part(name: str) -> str:
    return quote(name, safe="")
