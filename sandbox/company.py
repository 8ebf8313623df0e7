"""A small company at work: it keeps committing to a repository, over lakeFS's HTTP API alone.

`python -m sandbox.company --lakefs URL --namespace s3://bucket/prefix` lets it work on any lakeFS.
"""

from __future__ import annotations

import argparse
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import requests
import yaml

from core.installations.webhook_action import ACTION_FILE, lakefs_action
from sandbox.lakefs_http import LakeFS, LakeFSError
from sandbox.layout import ACCESS_KEY_ID, REPOSITORY, SECRET_ACCESS_KEY

MAIN = "main"
PEOPLE = ("amara", "bo", "chiara", "dmitri", "elif")
TOPICS = ("churn", "pricing", "returns", "forecast", "loyalty", "fraud", "delivery")
FOLDERS = ("sales", "events", "inventory", "support")
FIRST_DAYS, HISTORY_COMMITS = 25, 15
FIRST_DAY = date(2026, 10, 1)
MOST_BRANCHES = 4
CONFLICT, GONE = 409, 404
logger = logging.getLogger(__name__)


class Company:
    """What it does follows from the seed and from how the server answers."""

    def __init__(
        self,
        lakefs: Callable[[], LakeFS],
        repository: str = REPOSITORY,
        *,
        seed: int = 1,
        days: int = FIRST_DAYS,
        commits: int = HISTORY_COMMITS,
    ) -> None:
        """`lakefs` makes a client; uploads use several at a time. `days` and `commits` are those of the beginning."""
        self.repository = repository
        self._first_days, self._first_commits = days, commits
        self._connect = lakefs
        self._lakefs = lakefs()
        self._clients = threading.local()
        self._random = random.Random(seed)
        self._days = 0
        self._versions = 0

    # --- the beginning ----------------------------------------------------------------------------------------------

    def found(self, namespace: str, *, hook_url: str = "", hook_secret: str = "") -> None:
        """Makes the repository with its first history: some hundred objects in a few commits. An existing one is
        taken as it is."""
        try:
            self._lakefs.create_repository(self.repository, namespace)
        except LakeFSError as error:
            if error.status != CONFLICT:
                raise
            return
        if hook_url:
            action = yaml.safe_dump(lakefs_action(hook_url, hook_secret), sort_keys=False).encode()
            self._lakefs.upload(self.repository, MAIN, ACTION_FILE, action, "application/yaml")
            self._commit(MAIN, "Tell LakeMirror of each commit")
        self._first_load()
        while len(self._lakefs.log(self.repository, MAIN)) < self._first_commits:
            self.step(quiet=True)

    def _first_load(self) -> None:
        reference = {f"reference/{name}.csv": self._content(400) for name in ("customers", "products", "stores")}
        days = {path: self._content(120) for day in range(self._first_days) for path in self._day_files(day)}
        self._upload(MAIN, reference | days)
        self._days = self._first_days
        self._commit(MAIN, f"Load the first {self._days} days")

    def _day_files(self, day: int) -> list[str]:
        landed = FIRST_DAY + timedelta(days=day)
        return [f"{folder}/date={landed}/part-{n}.csv" for folder in FOLDERS for n in range(2)]

    # --- day by day -------------------------------------------------------------------------------------------------

    def pause_seconds(self, interval: float) -> float:
        """How long to rest before the next step."""
        return interval * self._random.uniform(0.5, 1.5)

    def try_step(self) -> str:
        """One step; gives what was done, "" when the server did not let it."""
        try:
            return self.step()
        except (LakeFSError, requests.RequestException) as problem:
            logger.warning("company: %s", problem)
            return ""

    def step(self, *, quiet: bool = False) -> str:
        """Does one thing and says what. Quiet ones end no branch and rewrite no history."""
        branches = sorted(self._lakefs.branches(self.repository))
        side = [name for name in branches if name != MAIN]
        deeds: list[tuple[int, Callable[[], str]]] = [(40, self._land_a_day), (12, self._correct)]
        if len(side) < MOST_BRANCHES:
            deeds.append((14, self._begin_branch))
        if side:
            name = self._random.choice(side)
            deeds += [(22, lambda: self._work_on(name)), (12, lambda: self._merge(name))]
            if not quiet:
                deeds += [(4, lambda: self._abandon(name)), (4, lambda: self._rewrite(name))]
        weights = [weight for weight, _ in deeds]
        deed = self._random.choices([deed for _, deed in deeds], weights)[0]
        return deed()

    def _land_a_day(self) -> str:
        self._days += 1
        self._upload(MAIN, {path: self._content(120) for path in self._day_files(self._days)})
        return self._commit(MAIN, f"Land day {self._days}")

    def _correct(self) -> str:
        """Overwrites and deletes on main."""
        folder = self._random.choice(FOLDERS)
        paths = [item["path"] for item in self._lakefs.listing(self.repository, MAIN, f"{folder}/")]
        chosen = self._random.sample(paths, min(3, len(paths)))
        self._upload(MAIN, {path: self._content(140) for path in [*chosen[1:], "reference/products.csv"]})
        for path in chosen[:1]:
            self._lakefs.delete(self.repository, MAIN, path)
        return self._commit(MAIN, f"Correct {folder}: drop a bad file, resend the others")

    def _begin_branch(self) -> str:
        self._versions += 1
        name = f"{self._random.choice(TOPICS)}-{self._versions}"
        self._lakefs.create_branch(self.repository, name, MAIN)
        return self._work_on(name)

    def _work_on(self, branch: str) -> str:
        self._versions += 1
        files = {
            f"models/{branch}/v{self._versions}/{part}.bin": self._content(300) for part in ("weights", "features")
        }
        self._upload(branch, files | {f"models/{branch}/latest.json": self._content(60)})
        return self._commit(branch, f"Train {branch.rsplit('-', 1)[0]}, version {self._versions}")

    def _merge(self, branch: str) -> str:
        try:
            author = {"author": self._random.choice(PEOPLE)}
            self._lakefs.merge(self.repository, branch, MAIN, f"Publish {branch}", author)
        except LakeFSError as error:
            if "no changes" not in error.message:
                raise
            return self._work_on(branch)
        if self._random.random() < 0.5:
            self._lakefs.delete_branch(self.repository, branch)
        return f"merged {branch}"

    def _abandon(self, branch: str) -> str:
        self._lakefs.delete_branch(self.repository, branch)
        return f"deleted {branch}"

    def _rewrite(self, branch: str) -> str:
        """A force-push: the branch goes back one commit and takes another way."""
        parents = self._lakefs.commit_record(self.repository, self._lakefs.head(self.repository, branch))["parents"]
        self._lakefs.hard_reset(self.repository, branch, parents[0])
        return "rewrote history: " + self._work_on(branch)

    # --- the tools --------------------------------------------------------------------------------------------------

    def _commit(self, branch: str, message: str) -> str:
        author = self._random.choice(PEOPLE)
        self._lakefs.commit(self.repository, branch, message, {"author": author})
        return f"{author} on {branch}: {message}"

    def _upload(self, branch: str, files: dict[str, bytes]) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda item: self._client().upload(self.repository, branch, *item), files.items()))

    def _client(self) -> LakeFS:
        if not hasattr(self._clients, "lakefs"):
            self._clients.lakefs = self._connect()
        client: LakeFS = self._clients.lakefs
        return client

    def _content(self, size: int) -> bytes:
        """Rows that look like data; no two files are equal."""
        rows = [f"{self._random.getrandbits(32):08x},{self._random.choice(PEOPLE)},{n}" for n in range(size // 20)]
        return ("id,who,n\n" + "\n".join(rows) + "\n").encode()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.company", description=__doc__.splitlines()[0])
    parser.add_argument("--lakefs", required=True, metavar="URL")
    parser.add_argument("--namespace", required=True, metavar="S3-URI", help="storage namespace of a new repository")
    parser.add_argument("--repository", default=REPOSITORY)
    parser.add_argument("--access-key-id", default=ACCESS_KEY_ID)
    parser.add_argument("--secret-access-key", default=SECRET_ACCESS_KEY)
    parser.add_argument("--hook-url", default="")
    parser.add_argument("--hook-secret", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=float, default=4.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    company = Company(
        lambda: LakeFS(options.lakefs, options.access_key_id, options.secret_access_key),
        options.repository,
        seed=options.seed,
    )
    company.found(options.namespace, hook_url=options.hook_url, hook_secret=options.hook_secret)
    while True:
        time.sleep(company.pause_seconds(options.interval))
        logger.info("%s", company.try_step())


if __name__ == "__main__":
    main()
