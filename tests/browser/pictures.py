"""Pictures of the pages for docs/images, taken from a running demo in which some objects are held back meanwhile."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from sandbox.client import Sandbox
from tests.browser.conftest import CHROMIUM, FLAGS

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
VAR = Path(os.environ.get("LAKEMIRROR_VAR", ROOT / "var"))
MIRROR = "/service/replication/v1/repositories/lake/mirrors/lake-eu"
LARGEST = 170_000
BLOCKED_SECONDS = 240


@dataclass(frozen=True)
class Picture:
    """A page as it is shown. In its address {branch} and {commit} are blocked ones, {head} is complete."""

    name: str
    address: str
    width: int = 1280
    height: int = 760
    dark: bool = False


PICTURES = (
    Picture("overview", "/"),
    Picture("mirrors", "/mirrors/"),
    Picture("new", "/mirrors/new/", height=960),
    Picture("mirror", "/mirrors/lake-eu/"),
    Picture("mirror-dark", "/mirrors/lake-eu/", dark=True),
    Picture("mirror-390", "/mirrors/lake-eu/", width=390, height=844),
    Picture("commits", "/mirrors/lake-eu/commits/"),
    Picture("commit", "/mirrors/lake-eu/commits/{commit}/"),
    Picture("commit-390-dark", "/mirrors/lake-eu/commits/{commit}/", width=390, height=844, dark=True),
    Picture("certificate", "/mirrors/lake-eu/commits/{head}/"),
    Picture("backlog", "/mirrors/lake-eu/backlog/"),
    Picture("metrics", "/mirrors/lake-eu/metrics/"),
    Picture("runs", "/mirrors/lake-eu/runs/"),
    Picture("settings", "/mirrors/lake-eu/settings/"),
    Picture("jobs", "/jobs/"),
    Picture("exports", "/exports/", height=420),
    Picture("export", "/exports/1/", height=800),
    Picture("export-failed", "/exports/2/", height=720),
    Picture("export-390-dark", "/exports/2/", width=390, height=844, dark=True),
    Picture("export-new", "/exports/new/", height=720),
    Picture("rules", "/replication/", height=420),
    Picture("rule", "/replication/company-copies/", height=900),
    Picture("rule-390-dark", "/replication/company-copies/", width=390, height=844, dark=True),
)


def main(names: Sequence[str]) -> int:
    """Takes those that are named, or all; 1 when one is larger than it may be."""
    wanted = [picture for picture in PICTURES if not names or picture.name in names]
    with sync_playwright() as playwright, held_back(Sandbox.find(VAR / "sandbox")):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        places = blocked_places(signed_in(browser, Picture("", "/")))
        sizes = {picture.name: take(browser, picture, places) for picture in wanted}
        browser.close()
    for name, size in sizes.items():
        print(f"{name:16} {size / 1000:6.1f} kB{'  is too large' if size > LARGEST else ''}")
    return 1 if max(sizes.values(), default=0) > LARGEST else 0


@contextmanager
def held_back(sandbox: Sandbox) -> Iterator[None]:
    """Three objects stay behind on their way to eu-west-1 while the pictures are taken."""
    sandbox.hold(kind="data", count=3, destination="eu-west-1")
    try:
        yield
    finally:
        sandbox.release()


def blocked_places(page: Page) -> dict[str, str]:
    """A blocked branch and its commit, once there is one, and a head that is complete."""
    deadline = time.monotonic() + BLOCKED_SECONDS
    while not (blocked := asked(page, "branches?status=blocked")):
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing was blocked within {BLOCKED_SECONDS} s")
        time.sleep(2)
    branch = blocked[0]["name"]
    waiting = asked(page, f"commits?branch={branch}&data=waiting")
    heads = [found["mirror_head"] for found in asked(page, "branches") if found["mirror_head"]]
    return {"branch": branch, "commit": waiting[-1]["id"], "head": heads[0]}


def asked(page: Page, what: str) -> list[dict[str, Any]]:
    """A list of the API, as who is signed in may read it."""
    results: list[dict[str, Any]] = page.request.get(f"{MIRROR}/{what}").json()["results"]
    return results


def signed_in(browser: Browser, picture: Picture) -> Page:
    """A page of the demo's administrator, as large and as dark as the picture."""
    secrets = json.loads((VAR / "demo/secrets.json").read_text())
    address = json.loads((VAR / "run/environment.json").read_text())["REPLICATION_LISTEN_ADDRESS"]
    context = browser.new_context(
        base_url=f"http://{address}",
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/login/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", secrets["password"])
    page.click("button:has-text('Sign in')")
    page.wait_for_load_state()
    return page


def take(browser: Browser, picture: Picture, places: dict[str, str]) -> int:
    """Takes one picture; gives its size in bytes."""
    page = signed_in(browser, picture)
    page.goto(picture.address.format(**places))
    if fill := FORMS.get(picture.name):
        fill(page)
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{picture.name}.png"
    page.screenshot(path=path)
    page.context.close()
    return path.stat().st_size


def fill_in(page: Page) -> None:
    """What somebody might type who has not seen where the replication leads."""
    page.fill("[name=source_repository]", "lake")
    page.fill("[name=include]", "main")
    page.fill("[name=name]", "lake-second")
    page.fill("[name=storage_namespace]", "s3://lake-eu-west-1/second")
    page.get_by_text("Replication preserves keys").first.wait_for(timeout=30_000)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def fill_in_export(page: Page) -> None:
    """An export to a bucket that nobody has made yet."""
    branch = next(one["name"] for one in asked(page, "branches") if one["name"] != "main")
    typed = {"repository": "lake", "branch": branch, "path": "s3://new-bucket/latest"}
    typed |= {"status_path": "s3://new-bucket/states", "patterns": r".*/date=\d+-\d+-\d+/"}
    for name, text in typed.items():
        page.fill(f"[name={name}]", text)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.get_by_text("There is no bucket").first.wait_for(timeout=30_000)


FORMS = {"new": fill_in, "export-new": fill_in_export}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
