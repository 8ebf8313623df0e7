"""What somebody typed into a form while their session ended: carried through signing in and given back to the form.

Until they are signed in it travels in the sign-in page, signed and for an hour: the database keeps nothing for
strangers. Only forms that ask for it, and hold no secret, are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core import signing
from django.http import HttpRequest, QueryDict

View = TypeVar("View", bound=Callable[..., Any])

GIVEN_BACK = "What you typed before you signed in has been restored. It has not been saved yet."
FIELD = "typed"
"""Of the sign-in form, and of the session."""
_SALT = "rbac.typed"  # never renamed: what was sealed with it could not be opened
_SECONDS = 3600
_MOST = 500_000


def keeps_typed(view: View) -> View:
    """Mark the view of a form whose fields are given back to who had to sign in again."""
    view.keeps_typed = True  # type: ignore[attr-defined]
    return view


def is_kept(request: HttpRequest) -> bool:
    """Whether a refused request is such a form."""
    match = request.resolver_match
    return request.method == "POST" and match is not None and getattr(match.func, "keeps_typed", False)


def seal(request: HttpRequest) -> str:
    """The fields of a refused POST, signed; "" for more than anybody types."""
    fields = {name: request.POST.getlist(name) for name in request.POST if name != "csrfmiddlewaretoken"}
    sealed = signing.dumps([request.path, fields], salt=_SALT, compress=True)
    return sealed if len(sealed) <= _MOST else ""


def lay_by(request: HttpRequest, sealed: str) -> None:
    """Keep what a seal holds in the session; one that is too old, or not ours, holds nothing."""
    try:
        request.session[FIELD] = signing.loads(sealed, salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature:
        return


def take(request: HttpRequest) -> QueryDict | None:
    """What was typed into the form of this address; once."""
    path, fields = request.session.get(FIELD) or ("", {})
    if path != request.path:
        return None
    del request.session[FIELD]
    given = QueryDict(mutable=True)
    for name, values in fields.items():
        given.setlist(name, values)
    return given
