"""A Chromium that opens the pages of a live server, signed in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.cast import PASSWORD

CHROMIUM = os.environ.get("LAKEMIRROR_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Without it the tests fail, since a skipped browser test shows nothing."""
    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is not there: apt-get install chromium libatomic1")
    with sync_playwright() as playwright:
        # Playwright's own loop runs in this thread, which Django takes for an asynchronous caller.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, live_server: Any) -> Iterator[BrowserContext]:
    """A fresh profile at 1280 pixels."""
    context = browser.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 760})
    context.set_default_timeout(10_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that nobody is signed in at; a script error on it fails the test, and so does what its policy forbids."""
    page = context.new_page()
    page.on("pageerror", _fail)
    page.on("console", _fail_if_forbidden)
    return page


def _fail(error: Any) -> None:
    raise AssertionError(f"a script of the page failed: {error}")


def _fail_if_forbidden(message: Any) -> None:
    assert "Content Security Policy" not in message.text, message.text


@pytest.fixture
def olga(page: Page, owner: Any, live_server: Any) -> Page:
    """The page of Olga, who is signed in and may do everything."""
    client = Client()
    client.force_login(owner)
    name = settings.SESSION_COOKIE_NAME
    page.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    return page


@pytest.fixture
def plain(browser: Browser, live_server: Any, owner: Any) -> Iterator[Page]:
    """Olga's page in a browser that runs no scripts."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(10_000)
    page = context.new_page()
    sign_in(page, "olga")
    yield page
    context.close()


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    """Through the form, as people do."""
    page.goto("/login/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.click("button:has-text('Sign in')")
    page.wait_for_load_state()
