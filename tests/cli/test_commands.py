"""What each command asks, prints and ends with, against recorded answers."""

from __future__ import annotations

import json

import pytest

from tests.cli.answers import BLOCKED, CERTIFICATE, NOW, a_blocker, a_branch, a_check, a_mirror, a_page, blockers
from tests.cli.speaking import API, StandIn, Terminal

LAKE_EU = "/repositories/lake/mirrors/lake-eu"
IN_LAKE = ("lake-eu", "--repository", "lake")


def test_a_list_begins_with_what_needs_somebody(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", a_page(a_mirror("a-eu"), BLOCKED))
    done = run("mirror", "list")
    first, _, header, *rows = done.stdout.splitlines()
    assert (done.exit_code, first) == (0, "2 mirrors: 1 Blocked, 1 Up to date.")
    assert header.split()[:2] == ["Mirror", "State"]
    assert [row.split()[0] for row in rows] == ["blocked-eu", "a-eu"]
    assert " 1 of 2 " in rows[0] and "2 commits" in rows[0] and "2 min" in rows[0] and "5 min ago" in rows[0]


def test_a_list_counts_what_is_known_to_be_up_to_date_in_a_pause(server: StandIn, run: Terminal) -> None:
    paused = [a_branch(status="Paused"), a_branch("old", status="Paused", lag_seconds=None)]
    server.says("GET", "/mirrors", a_page(a_mirror("a-eu", status="Paused", branches=paused)))
    assert " 1 of 2 " in run("mirror", "list").stdout.splitlines()[-1]


def test_a_list_of_several_pages_is_one(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", a_page(a_mirror("a"), after="a"), a_page(a_mirror("b")))
    listed = run.json("mirror", "list")
    assert [mirror["id"] for mirror in listed["results"]] == ["a", "b"]
    assert listed["pagination"] == {"has_more": False, "next_offset": "", "max_per_page": 1000, "results": 2}
    assert [asked.query for asked in server.asked] == [{}, {"after": "a"}]


def test_without_mirrors_it_says_so(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/repositories/lake/mirrors", a_page())
    done = run("mirror", "list", "--repository", "lake", "--source-region", "us-east-1")
    assert (done.exit_code, done.stdout) == (0, "No mirrors.\n")
    assert server.asked[0].query == {"source_region": "us-east-1"}


def test_a_mirror_is_found_by_its_id_alone(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", a_page(a_mirror("lake-east"), after="lake-east"), a_page(a_mirror()))
    server.says("GET", LAKE_EU, a_mirror())
    assert run.json("mirror", "show", "lake-eu") == a_mirror()
    assert [asked.query for asked in server.asked] == [{"after": "lake-e"}, {"after": "lake-east"}, {}]


def test_a_mirror_that_is_not_there_is_named(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", a_page(a_mirror("lake-eu-2")))
    done = run("mirror", "show", "lake-eu")
    assert (done.exit_code, done.stdout) == (4, "")
    assert done.stderr.startswith("lakemirror: there is no mirror 'lake-eu'")


def test_names_are_quoted_in_addresses(server: StandIn, run: Terminal) -> None:
    run("mirror", "pause", "a/../b", "--repository", "x?y")
    assert server.asked[0].path == f"{API}/repositories/x%3Fy/mirrors/a%2F..%2Fb/pause"


def test_a_mirror_is_shown_with_its_sentence_figures_and_branches(server: StandIn, run: Terminal) -> None:
    server.says("GET", LAKE_EU, BLOCKED | {"warnings": ["'x*' matches no branch now"]})
    done = run("mirror", "show", *IN_LAKE)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["blocked-eu: Blocked", BLOCKED["reason"], "Note: 'x*' matches no branch now."]
    assert "Worst lag     2 min (1 of 2 branches behind)" in lines
    assert "Source        lake in us-east-1, checked 3 s ago" in lines
    main = next(line for line in lines if line.startswith("main  "))
    assert " ".join(main.split()) == "main Blocked 58ebd328 94e84f28 2 commits 2 min 1 object 5 min ago"
    assert lines[-1] == "As of 2026-11-21 12:25:00 UTC"


def test_what_nobody_knows_is_a_dash(server: StandIn, run: Terminal) -> None:
    unknown = {"source_head": None, "mirror_head": None, "lag_seconds": None, "advanced_at": None, "status": "New"}
    server.says("GET", LAKE_EU, a_mirror(source_looked_at=None, branches=[a_branch(**unknown)]))
    done = run("mirror", "show", *IN_LAKE)
    assert "None" not in done.stdout
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("main")] == [
        ["main", "New", *"——————"]
    ]


def test_what_a_terminal_would_obey_is_made_visible(server: StandIn, run: Terminal) -> None:
    server.says("GET", f"{LAKE_EU}/blockers", blockers(a_blocker(path="a\x1b[2J\n[red]b[/red]")))
    done = run("mirror", "blockers", *IN_LAKE)
    assert r"a\x1b[2J\n[red]b[/red]" in done.stdout


def test_blockers_are_named_and_end_with_one(server: StandIn, run: Terminal) -> None:
    things = [
        a_blocker(commits_total=13),
        a_blocker(kind="range", path=None, size=None, reason="range-missing", damage=True),
    ]
    server.says("GET", f"{LAKE_EU}/blockers", blockers(*things))
    done = run("mirror", "blockers", *IN_LAKE, "--commit", "94e84f", "--branch", "main", "--reason", "missing")
    first, _, _, one, other = done.stdout.splitlines()
    assert (done.exit_code, first) == (1, "2 problems: missing or damaged.")
    assert " ".join(one.split()) == "object sales/part-1.csv 19.2 MB missing 13 commits 2 min 8 in 41 s"
    assert "range missing (was complete before)" in other and "data/x/y" in other
    only = {"commit": "94e84f", "branch": "main", "reason": "missing"}
    assert server.asked[0].query == {"group_by": "object", **only}


def test_a_server_that_does_not_group_by_object_is_asked_without(server: StandIn, run: Terminal) -> None:
    path = f"{API}{LAKE_EU}/blockers"
    server.answers["GET", path] = [
        (400, {"message": "'object' is not one of reason, prefix"}),
        (200, blockers(a_blocker())),
    ]
    done = run("mirror", "blockers", *IN_LAKE)
    assert (done.exit_code, "sales/part-1.csv" in done.stdout) == (1, True)
    assert [asked.query for asked in server.asked] == [{"group_by": "object"}, {}]


def test_no_blockers_end_with_zero(server: StandIn, run: Terminal) -> None:
    server.says("GET", f"{LAKE_EU}/blockers", blockers())
    done = run("mirror", "blockers", *IN_LAKE)
    assert (done.exit_code, done.stdout) == (0, "Nothing is missing or damaged.\n")


def test_no_more_blockers_are_fetched_than_wanted(server: StandIn, run: Terminal) -> None:
    page = [a_blocker(id=number) for number in range(100)]
    server.says("GET", f"{LAKE_EU}/blockers", blockers(*page, after="99"), blockers(*page[:20], after="119"))
    done = run("mirror", "blockers", *IN_LAKE, "--limit", "120")
    assert done.stdout.startswith("The first 120; there are more.\n")
    assert [asked.query for asked in server.asked] == [
        {"group_by": "object"},
        {"group_by": "object", "after": "99", "amount": "20"},
    ]


def test_where_not_all_are_kept_by_name_it_says_so(server: StandIn, run: Terminal) -> None:
    server.says("GET", f"{LAKE_EU}/blockers", blockers(a_blocker()) | {"all_named": False})
    assert run("mirror", "blockers", *IN_LAKE).stdout.startswith("The first 1; there are more.\n")


def test_blockers_are_counted_by_reason(server: StandIn, run: Terminal) -> None:
    groups = [{"reason": "missing", "blockers": 1204, "oldest": "2026-11-21T12:23:00.000Z"}]
    server.says("GET", f"{LAKE_EU}/blockers", blockers(*groups))
    done = run("mirror", "blockers", *IN_LAKE, "--group-by", "reason")
    assert done.exit_code == 1
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["Reason", "Problems", "Missing", "for"],
        ["missing", "1,204", "2", "min"],
    ]


def test_a_certificate_is_every_fact_with_its_digests(server: StandIn, run: Terminal) -> None:
    server.says("GET", f"{LAKE_EU}/commits/94e84f/certificate", CERTIFICATE)
    done = run("mirror", "certify", "lake-eu", "94e84f", "--repository", "lake")
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (done.exit_code, told["Digest"], told["Entries"]) == (0, CERTIFICATE["digest"], "20,114")
    assert run.json("mirror", "certify", "lake-eu", "94e84f", "--repository", "lake") == CERTIFICATE


def test_creating_sends_what_was_given_and_nothing_else(server: StandIn, run: Terminal) -> None:
    server.says(
        "POST", "/repositories/lake/mirrors", a_mirror(status="New", reason="New: it is being made."), status=201
    )
    place = ("--region", "eu-west-1", "--storage-namespace", "s3://dst/lake-eu")
    done = run("mirror", "create", *IN_LAKE, *place, "--include", "main", "--include", "rel-*", "--tags")
    assert (done.exit_code, done.stdout) == (0, "lake-eu: New\nNew: it is being made.\n")
    assert server.asked[0].body == {
        "name": "lake-eu",
        "region": "eu-west-1",
        "storage_namespace": "s3://dst/lake-eu",
        "branches": {"include": ["main", "rel-*"]},
        "tags": True,
    }


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pausing_and_resuming_tell_how_the_mirror_is_then(server: StandIn, run: Terminal, verb: str) -> None:
    server.says("POST", f"{LAKE_EU}/{verb}", a_mirror(status="Paused", reason="Paused: no branch is moved."))
    assert run("mirror", verb, *IN_LAKE).stdout == "lake-eu: Paused\nPaused: no branch is moved.\n"


def test_sync_says_what_is_done_now(server: StandIn, run: Terminal) -> None:
    server.says("GET", LAKE_EU, a_mirror())
    server.says("POST", f"{LAKE_EU}/sync", {"message": "lake is looked at now"}, status=202)
    assert run("mirror", "sync", *IN_LAKE).stdout == "lake is looked at now\n"


def test_a_check_is_asked_for(server: StandIn, run: Terminal) -> None:
    server.says("POST", f"{LAKE_EU}/validate", a_check(), status=202)
    done = run("mirror", "validate", *IN_LAKE, "--branch", "main", "--depth", "content")
    assert (done.exit_code, done.stdout) == (0, "Check 3 of branch main by etag: queued.\n")
    assert server.asked[0].body == {"branch": "main", "depth": "content"}


@pytest.mark.parametrize("given", [(), ("--branch", "main", "--all")])
def test_a_check_is_of_one_thing(run: Terminal, given: tuple[str, ...]) -> None:
    done = run("mirror", "validate", *IN_LAKE, *given)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "give one of --commit, --branch and --all" in done.stderr


# --- deleting -------------------------------------------------------------------------------------------------------


def test_a_mirror_is_deleted_once_its_name_is_typed(server: StandIn, run: Terminal) -> None:
    server.says("GET", LAKE_EU, a_mirror())
    server.says("DELETE", LAKE_EU, None, status=204)
    done = run("mirror", "delete", *IN_LAKE, typed="lake-eu\n")
    assert (done.exit_code, done.stdout) == (0, "lake-eu is deleted. Its objects under s3://dst/lake-eu stay.\n")
    assert "Objects under s3://dst/lake-eu stay" in done.stderr


@pytest.mark.parametrize(("typed", "status"), [("lake-us\n", 1), ("\n", 1), ("", 2)])
def test_another_name_or_none_deletes_nothing(server: StandIn, run: Terminal, typed: str, status: int) -> None:
    server.says("GET", LAKE_EU, a_mirror())
    done = run("mirror", "delete", *IN_LAKE, typed=typed)
    assert (done.exit_code, done.stdout) == (status, "")
    assert "nothing was deleted" in done.stderr
    assert {asked.method for asked in server.asked} == {"GET"}


def test_what_was_changed_since_it_was_shown_is_not_deleted(server: StandIn, run: Terminal) -> None:
    server.tag = '"as-it-was"'
    server.says("GET", LAKE_EU, a_mirror())
    server.says("DELETE", LAKE_EU, {"message": "somebody has changed them"}, status=412)
    done = run("mirror", "delete", *IN_LAKE, typed="lake-eu\n")
    assert (done.exit_code, server.asked[-1].headers["If-Match"]) == (5, '"as-it-was"')
    assert done.stderr.endswith("lakemirror: somebody has changed them\n")


def test_a_program_need_not_type(server: StandIn, run: Terminal) -> None:
    server.says("GET", LAKE_EU, a_mirror())
    server.says("DELETE", LAKE_EU, None, status=204)
    done = run("mirror", "delete", *IN_LAKE, "--yes", "--json")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_what_programs_read_is_the_answer_alone(server: StandIn, run: Terminal) -> None:
    server.says("GET", f"{LAKE_EU}/blockers", blockers(a_blocker()))
    done = run("mirror", "blockers", *IN_LAKE, "--json")
    assert (done.exit_code, json.loads(done.stdout)["as_of"]) == (1, NOW)
