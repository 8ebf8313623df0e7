"""Signing in and out, as events; wrong passwords, as counts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from audit import strangers
from audit.record import audit
from audit.verbs import Verb

SIGN_IN, SIGN_OUT = "auth:SignIn", "auth:SignOut"


def listen() -> None:
    """Hear of every session, however it began."""
    user_logged_in.connect(_signed_in, dispatch_uid="audit.sign_in_signals")
    user_logged_out.connect(_signed_out, dispatch_uid="audit.sign_in_signals")
    user_login_failed.connect(_wrong_password, dispatch_uid="audit.sign_in_signals")


def _signed_in(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    if request.path:  # else nobody asked for it: a session that was made without any request
        audit(actor=user, right=(SIGN_IN, user.arn), verb=Verb.SIGN_IN)


def _signed_out(sender: Any, request: HttpRequest, user: Any, **_: Any) -> None:
    if user is not None and request.path:
        audit(actor=user, right=(SIGN_OUT, user.arn), verb=Verb.SIGN_OUT)


def _wrong_password(sender: Any, request: HttpRequest | None = None, **_: Any) -> None:
    if request is not None:
        strangers.refused("wrong-password")
