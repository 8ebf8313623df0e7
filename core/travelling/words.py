"""What goes with the bytes of a rule's objects, in words. Pure."""

from __future__ import annotations

from core.text.phrases import Phrase, code, count, say
from core.travelling.describing import SAME, Terms


def travel_words(
    terms: Terms, sweep_heads_per_second: int, *, versions: bool = False, both_ways: bool = False
) -> Phrase:
    """One or two sentences: what travels, in which storage class, which tags objects need, and how changes are
    noticed; `versions`: all of them are copied; `both_ways`: no change alone is."""
    what: list[Phrase | str] = ["Headers, metadata, tags, retention and legal holds travel with them"]
    if not terms.all:
        what = ["Their headers and metadata of the first copy travel with them"]
    if terms.storage_class == SAME:
        what.append(", in the source's storage class")
    elif terms.storage_class:
        what += [", in the storage class ", code(terms.storage_class)]
    if terms.tags:
        what.append("; only versions with " if versions else "; only objects with ")
        for at, (key, value) in enumerate(sorted(terms.tags.items())):
            what += [" and " if at else "", code(f"{key}={value}")]
        what.append(" are copied, and no delete markers" if versions else " are copied")
    what.append(".")
    if not terms.all or both_ways:
        what.append(" Later changes of them alone are not copied.")
    elif sweep_heads_per_second:
        asked = count(sweep_heads_per_second, "request")
        what.append(f" Changes of them alone are noticed by events, and by {asked} a second after each comparison.")
    else:
        what.append(" Changes of them alone are noticed by events only.")
    return say(*what)
