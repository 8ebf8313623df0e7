"""What a preflight says of branches that lack the file by which lakeFS tells of them."""

from __future__ import annotations

from core.errors import Unreachable
from core.installations.preflight import CheckOutcome
from core.installations.preflight_hooks import Hooked, check_hold_file, check_webhook


def test_branches_that_lack_the_file_are_named_once_others_have_it() -> None:
    check = check_webhook("lake", Hooked(["main"], ["dev", "wip"], unread=7))
    assert check.state is CheckOutcome.WARNING
    assert check.message == (
        "2 of 3 branches (dev, wip) lack _lakefs_actions/lakemirror.yaml, so that their changes are seen only when "
        "LakeMirror asks; 7 others were not looked at"
    )
    assert check.fix == "Commit _lakefs_actions/lakemirror.yaml to them, or merge main, which has it, into them"


def test_a_source_without_any_such_file_is_in_order_and_is_told_so() -> None:
    check = check_webhook("lake", Hooked([], ["main"]))
    assert (check.state, check.fix, "asks for changes" in check.message) == (CheckOutcome.OK, "", True)


def test_where_all_have_it_nothing_is_to_be_done() -> None:
    for check in (check_webhook("lake", Hooked(["main"])), check_hold_file("lake", Hooked(["main"]))):
        assert (check.state, check.fix) == (CheckOutcome.OK, "")


def test_what_was_not_read_is_not_known() -> None:
    for check in (check_webhook, check_hold_file):
        assert check("lake", Unreachable("down")).state is CheckOutcome.UNKNOWN


def test_of_held_merges_a_branch_without_the_file_is_a_warning_even_if_none_has_it() -> None:
    check = check_hold_file("lake", Hooked([], ["main"]))
    assert check.state is CheckOutcome.WARNING
    assert check.message.startswith("1 of 1 branch (main) lacks _lakefs_actions/lakemirror-hold.yaml: when they are")
    assert "to the default branch first" in check.fix
