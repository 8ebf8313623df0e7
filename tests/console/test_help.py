"""Help: the documents as pages, links that lead somewhere, and what a search finds."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from console.help import topics
from console.help.documents import DOCS, document, documents, file_of, groups, names
from console.help.markdown import render
from console.help.search import search
from core.errors import NotFound
from tests.mirrors.factories import make_company
from tests.mirrors.page_text import text

LINK = re.compile(r'(?:href|src)="([^"]+)"')


def leads_somewhere(address: str, at: str) -> bool:
    """Whether an address in a document is one of help, with its anchor."""
    path, _, anchor = unquote(unescape(address)).partition("#")
    path = path or at
    if path.startswith("/help/files/"):
        return file_of(path.removeprefix("/help/files/")).exists()
    if path == "/help/":
        return not anchor or any(anchor == title.lower().replace(" ", "-") for title, _ in groups())
    found = document(path.removeprefix("/help/").strip("/"))
    return not anchor or anchor in found.rendered.anchors


def test_every_link_and_picture_in_a_document_has_its_target() -> None:
    assert {one.name for one in documents()} == set(names())
    checked, dead = 0, []
    for one in documents():
        for address in LINK.findall(one.rendered.html):
            if address.startswith(("https://", "http://", "mailto:")):
                continue
            checked += 1
            if not leads_somewhere(address, one.address):
                dead.append((one.name, address))
    assert dead == []
    assert checked > 300


def test_every_picture_that_a_text_names_is_there() -> None:
    for path in DOCS.rglob("*.md"):
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text()):
            assert (path.parent / target).exists(), (path, target)


def test_help_of_each_page_has_its_target() -> None:
    addresses = set(_url_names(get_resolver()))
    assert set(topics.PAGES) <= addresses
    for topic in topics.PAGES.values():
        assert leads_somewhere(topics.address(topic), ""), topic


def _url_names(resolver: Any) -> list[str]:
    found: list[str] = []
    for one in resolver.url_patterns:
        found += _url_names(one) if isinstance(one, URLResolver) else [one.name] if isinstance(one, URLPattern) else []
    return found


def test_what_pages_of_people_are_not_told_apart_lead_to_the_first_page() -> None:
    assert topics.of_page(None) == topics.of_page("help") == "/help/"
    assert topics.of_page("mirror_backlog") == "/help/guide/troubleshooting/#what-a-commit-lacks"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 422, 429, 500, 502, 503])
def test_every_status_that_is_answered_has_its_row(status: int) -> None:
    assert leads_somewhere(topics.of_status(status), "")


def test_a_reason_has_its_row_and_what_is_unknown_none() -> None:
    assert topics.of_reason("object_missing") == "/help/guide/troubleshooting/#what-a-commit-lacks-object_missing"
    assert topics.of_reason("source_unreachable").endswith("#reasons-source_unreachable")
    assert topics.of_reason("denied").endswith("#files-that-an-export-could-not-copy-denied")
    assert topics.of_reason("no-such-reason") == topics.of_status(418) == ""
    assert topics.of_state("Blocked").endswith("#states-blocked")
    assert topics.of_state("Failed", of_export=True).endswith("#states-of-an-export-failed")


def test_html_in_a_text_is_shown_and_never_obeyed() -> None:
    html = render("# A\n\n<script>x</script> [bad](javascript:x) [out](https://a.example)\n", lambda one: one).html
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "javascript:" not in re.sub(r">[^<]*<", "><", html)
    assert '<a href="https://a.example" rel="noreferrer">out</a>' in html


def test_a_link_to_what_is_not_shipped_is_only_words() -> None:
    html = render("# A\n\nsee [the **bench**](../bench/README.md) and [this](x.md)\n", {"x.md": "/x/"}.get).html
    assert "see the <strong>bench</strong> and" in html and '<a href="/x/">this</a>' in html


def test_anchors_are_those_of_github_and_rows_have_theirs() -> None:
    table = "| code | do |\n|---|---:|\n| `a_b`, `c` | x |\n| Up to date | y |\n"
    found = render(f"# A b, c!\n\n## Same\n\n## Same\n\n{table}", str)
    assert found.anchors == {"a-b-c", "same", "same-1", "same-1-a_b", "same-1-c", "same-1-up-to-date"}
    assert 'style="' not in found.html and '<td data-label="do">x</td>' in found.html


def test_a_head_without_words_is_left_out() -> None:
    assert "<thead>" not in render("# A\n\n| | |\n|---|---|\n| x | y |\n", str).html
    half = render("# A\n\n| works when | |\n|---|---|\n| x | y |\n", str).html
    assert "<th>works when</th>\n<td></td>" in half and half.count("<th>") == 1


def test_a_search_finds_sections_by_all_their_words_headings_first() -> None:
    found = search("webhook set UP")
    assert found[0].section.title == "Set up the webhook"
    assert search("zzz-nothing webhook") == [] == search("  ")
    assert "<mark>webhook</mark>" in str(found[0].excerpt).casefold()
    assert "<b>" not in str(search("Content-Type: application/json")[0].excerpt)


def test_who_is_signed_in_reads_it_whatever_they_may(outsider: Any, client: Client) -> None:
    for address in ("/help/", "/help/guide/tasks/", "/help/files/images/new.png"):
        assert client.get(address).status_code == 302
    client.force_login(outsider)
    assert client.get("/help/guide/tasks/").status_code == 200
    assert client.get("/help/files/images/new.png")["Content-Type"] == "image/png"
    assert client.get("/help/files/examples/source.yaml")["Content-Type"].startswith("text/plain")


@pytest.mark.django_db
def test_nothing_but_documents_is_given_out(olga: Client) -> None:
    for name in ("files/../../manage.py", "files/guide/tasks.md", "nothing/", "files/..%2f..%2fmanage.py"):
        assert olga.get(f"/help/{name}").status_code == 404


def test_what_was_typed_is_shown_as_it_is_and_found_or_not(olga: Client) -> None:
    assert "No results for “<b>zzz</b>”" in text(olga.get("/help/", {"q": "<b>zzz</b>"}))
    assert "Set up the webhook" in text(olga.get("/help/", {"q": "webhook"}))


def test_the_header_leads_to_the_part_for_the_page(olga: Client) -> None:
    assert 'href="/help/guide/tasks/#create-a-mirror"' in olga.get("/mirrors/new/").content.decode()
    assert 'href="/help/"' in olga.get("/help/").content.decode()


def test_an_error_page_leads_to_its_row(olga: Client) -> None:
    answer = olga.get("/mirrors/none/")
    assert answer.status_code == 404
    assert 'href="/help/guide/troubleshooting/#answers-of-the-api-404"' in answer.content.decode()


def test_a_blocked_mirror_leads_to_what_to_do(olga: Client) -> None:
    make_company()
    page = olga.get("/mirrors/analytics-eu/").content.decode()
    assert 'href="/help/guide/troubleshooting/#what-a-commit-lacks-object_missing"' in page
    assert "what this means and what to do" not in olga.get("/mirrors/models-eu/").content.decode()


def test_documents_for_developers_are_found_last() -> None:
    found = [hit.document.name for hit in search("lease")]
    assert found.index("guide/troubleshooting") < found.index("decisions/0001-duties-with-leases")


def test_the_image_has_the_documents() -> None:
    ignored = (DOCS.parent / ".dockerignore").read_text().split()
    assert "docs" not in ignored and "*.md" not in ignored


def test_a_document_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound):
        document("../manage")
    with pytest.raises(NoReverseMatch):
        reverse("help-document", args=[""])
