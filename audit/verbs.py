"""What was done, as a word that programs compare: one of these stands in each event."""

from __future__ import annotations

from django.db.models import TextChoices


class Verb(TextChoices):
    """The stored word, and what a page says after the actor's name."""

    CREATE = "create", "created"
    REBUILD = "rebuild", "rebuilt"
    CHANGE = "change", "changed"
    DELETE = "delete", "deleted"
    PAUSE = "pause", "paused"
    RESUME = "resume", "resumed"
    SYNC = "sync", "asked for a look at"
    VALIDATE = "validate", "asked for a check of"
    VERIFY = "verify", "asked for a verification of"
    STOP = "stop", "stopped a check of"
    PRIORITISE = "prioritise", "put a commit first of"
    RETRY = "retry", "asked for a retry of"
    RESET_BRANCH = "reset_branch", "had uncommitted changes undone at"
    WAIVE = "waive", "waived commits of"
    WITHDRAW_WAIVER = "withdraw_waiver", "withdrew a waiver of"
    RUN = "run", "ran"
    REPAIR = "repair", "repaired"
    SET_PASSWORD = "set_password", "set the password of"
    DISABLE = "disable", "disabled"
    ENABLE = "enable", "enabled"
    ADD_MEMBER = "add_member", "added a member to"
    REMOVE_MEMBER = "remove_member", "removed a member from"
    ATTACH = "attach", "attached"
    DETACH = "detach", "detached"
    CREATE_KEY = "create_key", "created an access key of"
    DISABLE_KEY = "disable_key", "disabled an access key of"
    DELETE_KEY = "delete_key", "deleted an access key of"
    END_SESSIONS = "end_sessions", "ended the sessions of"
    SIGN_IN = "sign_in", "signed in as"
    SIGN_OUT = "sign_out", "signed out as"
    ACKNOWLEDGE = "acknowledge", "acknowledged"
    SNOOZE = "snooze", "snoozed"
    WAKE = "wake", "ended the snooze of"
    SEAL = "seal", "sealed events of"
