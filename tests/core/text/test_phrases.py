"""Sentences in parts."""

from __future__ import annotations

from core.text.phrases import code, count, name, say, sentence, sentences, short


def test_plain_text_is_the_parts_joined() -> None:
    assert (
        str(say(name("main"), " waits for ", short("a1b2c3d4e5f6"), " at ", code("x/y")))
        == "main waits for a1b2c3d4 at x/y"
    )


def test_a_sentence_begins_with_a_capital_and_ends_with_one_full_stop() -> None:
    assert str(sentence("it ", "works")) == "It works."
    assert str(sentence("it works.")) == "It works."


def test_a_name_keeps_its_case_at_the_beginning() -> None:
    assert str(sentence(name("main"), " is late")) == "main is late."


def test_empty_sentences_are_left_out() -> None:
    assert str(sentences(sentence("a"), say(), sentence("b"))) == "A. B."
    assert not sentences(say(), sentence())


def test_counts_have_their_noun_and_thousands() -> None:
    assert [count(1, "commit"), count(0, "commit"), count(8112, "branch", "branches")] == [
        "1 commit",
        "0 commits",
        "8,112 branches",
    ]
