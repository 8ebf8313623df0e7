"""The command beside each call: it exists, it is quoted, and it asks for the same as the call does."""

from __future__ import annotations

import html
import re
import shlex
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
from django.test import Client

from lakemirror.app import lakemirror
from mirrors.models import Blocker, Commit, Mirror
from mirrors.services.waivers import waiver_give
from rbac.models import User
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment
from web.api_snippets import command, curl

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/mirrors/analytics-eu/"
SITE = ["--url", "http://testserver"]


@pytest.fixture
def company(lm: Deployment, owner: User) -> dict[str, Mirror]:
    made = make_company()
    commit = Commit.objects.get(message="prices").sha
    waiver_give(actor=owner, mirror=made["analytics-eu"], commits=[commit], reason="old")
    return made


def commands(page: str) -> list[list[str]]:
    """The words of each command on a page, as a shell takes them."""
    return [shlex.split(html.unescape(one)) for one in re.findall(r"<code>(lakemirror .*?)</code>", page, re.DOTALL)]


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command's name and what it is given, by click's own reading; raises when there is no such command."""
    assert words[:2] == ["lakemirror", "mirror"]
    group = lakemirror.commands["mirror"]
    assert isinstance(group, click.Group)
    verb = group.commands[words[2]]
    return words[2], verb.make_context(words[2], words[3:]).params


@pytest.mark.parametrize(
    ("address", "verbs"),
    [
        (MIRROR, {"show", "lag", "loss", "sync", "pause"}),
        (f"{MIRROR}commits/", {"commits"}),
        (f"{MIRROR}backlog/", {"blockers", "bring", "retry", "unreplicated"}),
        (f"{MIRROR}runs/", {"runs", "validate"}),
        (f"{MIRROR}settings/", {"policy", "preflight", "show"}),
        (f"{MIRROR}waivers/", {"waivers", "withdraw"}),
        (f"{MIRROR}delete/", {"delete"}),
        ("/mirrors/lab-eu/", {"show", "lag", "loss", "sync", "pause", "reset-branch"}),
        ("/mirrors/billing-us/", {"show", "lag", "loss", "sync", "resume"}),
        ("/mirrors/new/", {"create"}),
    ],
)
def test_every_command_on_a_page_exists_and_can_be_pasted(
    olga: Client, company: Any, address: str, verbs: set[str]
) -> None:
    found = commands(olga.get(address).content.decode())
    assert {parsed(words)[0] for words in found} == verbs
    assert all(words[-2:] == SITE for words in found)


def test_those_of_a_commit_name_it(olga: Client, company: Any) -> None:
    sha = Commit.objects.get(message="nightly orders load").sha
    pages = [f"{MIRROR}commits/{sha}/", f"{MIRROR}commits/{sha}/repair/"]
    found = [parsed(words) for page in pages for words in commands(olga.get(page).content.decode())]
    assert [name for name, _ in found] == ["commit", "waive", "retry", "prioritise", "repair", "repair"]
    assert [given["dry_run"] for name, given in found if name == "repair"] == [True, False]
    assert all(sha in str(given) for name, given in found if name != "retry")


def test_what_a_list_is_narrowed_to_is_part_of_its_command(olga: Client, company: Any) -> None:
    Blocker.objects.update(path="it's; $(x)/y")
    page = olga.get(f"{MIRROR}backlog/", {"branch": "main", "prefix": "it's; $(x)/"}).content.decode()
    given = parsed(commands(page)[0])[1]
    assert (given["branch"], given["prefix"], given["reason"], given["mirror"]) == (
        "main",
        "it's; $(x)/",
        None,
        "analytics-eu",
    )
    of_branch = parsed(commands(olga.get(f"{MIRROR}commits/", {"branch": "main"}).content.decode())[0])[1]
    assert (of_branch["branch"], of_branch["stage"]) == ("main", None)


def test_a_new_mirror_s_command_has_all_that_was_typed(olga: Client, lm: Deployment) -> None:
    typed = {
        "source_repository": "lake",
        "source_region": "eu-west-1",
        "region": "us-east-1",
        "name": "it's",
        "storage_namespace": "s3://b/$(x)",
        "include": "main\nrel-*",
        "exclude": "tmp-*",
        "tags": "on",
    }
    answer = olga.post("/mirrors/new/", typed, headers={"HX-Request": "true", "HX-Target": "preflight"})
    given = parsed(commands(answer.content.decode())[0])[1]
    assert (given["name"], given["repository"], given["storage_namespace"]) == ("it's", "lake", "s3://b/$(x)")
    assert (given["include"], given["exclude"], given["tags"]) == (("main", "rel-*"), ("tmp-*",), True)
    assert (given["region"], given["source_region"]) == ("us-east-1", "eu-west-1")


def test_a_list_of_mirrors_has_its_call_and_command(olga: Client, company: Any) -> None:
    assert ["lakemirror", "mirror", "list", *SITE] in commands(olga.get("/mirrors/").content.decode())


def test_a_call_can_be_pasted_whatever_its_body_holds() -> None:
    words = shlex.split(curl("POST", "http://a/b?c=d&e=f", '{"branch": "it\'s"}').replace("\\\n", ""))
    assert words[words.index("-d") + 1] == '{"branch": "it\'s"}'
    assert urlsplit(words[-1]).query == "c=d&e=f" and "-X" not in words
    assert shlex.split(curl("DELETE", "http://a/b").replace("\\\n", ""))[3:5] == ["-X", "DELETE"]


def test_options_without_a_value_are_left_out() -> None:
    line = command("http://a", "blockers", "m", "--branch", "", "--reason", "x y", "--all")
    assert shlex.split(line) == [
        "lakemirror",
        "mirror",
        "blockers",
        "m",
        "--reason",
        "x y",
        "--all",
        "--url",
        "http://a",
    ]
