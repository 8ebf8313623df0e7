"""The shapes of the API's answers about what is at risk at a mirror, for its document."""

from __future__ import annotations

from rest_framework import serializers

from web.schemas import count_or_null, many_texts, number_or_null, page_with, text_or_null, time_or_null


class PrioritisedAnswer(serializers.Serializer):
    """A commit; `prioritised` if anything is left to do for it."""

    commit = serializers.CharField()
    prioritised = serializers.BooleanField()
    job = text_or_null()
    as_of = serializers.DateTimeField()


# --- lag --------------------------------------------------------------------------------------------------------------


class BreachAnswer(serializers.Serializer):
    """A time in which a branch was later than the target; no end while it lasts."""

    began_at = serializers.DateTimeField()
    ended_at = time_or_null()


class LagAnswer(serializers.Serializer):
    """How late a branch is, and the share of the time since `measured_since` in which it kept the target, without the
    `unknown_seconds` in which nobody knew."""

    branch = serializers.CharField()
    status = serializers.CharField()
    lag_seconds = number_or_null()
    pending_commits = serializers.IntegerField(help_text="that the branch pointed to, and the mirror's has not reached")
    oldest_pending_seen_at = time_or_null()
    attainment_30d = number_or_null()
    measured_since = time_or_null()
    unknown_seconds = number_or_null()
    breaches = BreachAnswer(many=True)


LagPageAnswer = page_with(
    LagAnswer,
    rpo_seconds=serializers.IntegerField(allow_null=True, help_text="the mirror's own target"),
    target_seconds=serializers.IntegerField(help_text="the target that counts"),
    watched_since=time_or_null(),
    looked_at=time_or_null(),
)


# --- loss -------------------------------------------------------------------------------------------------------------


class AuthorAnswer(serializers.Serializer):
    """How many of the commits somebody made."""

    committer = serializers.CharField(allow_blank=True)
    commits = serializers.IntegerField()


class LossAnswer(serializers.Serializer):
    """What would be lost; more than that with `at_least`. `objects` and `bytes` have not arrived."""

    commits = serializers.IntegerField()
    at_least = serializers.BooleanField()
    objects = serializers.IntegerField(allow_null=True, help_text="null while there are `unchecked_commits`")
    bytes = count_or_null()
    unchecked_commits = serializers.IntegerField()
    oldest_seen_at = time_or_null()
    authors = AuthorAnswer(many=True)
    more_authors = serializers.IntegerField()


class BranchLossAnswer(LossAnswer):
    """What would be lost of a branch."""

    branch = serializers.CharField()
    source_head = text_or_null()
    mirror_head = text_or_null()


LossPageAnswer = page_with(
    BranchLossAnswer,
    as_of=serializers.DateTimeField(allow_null=True, help_text="when the source was last checked"),
    unseen_seconds=serializers.FloatField(allow_null=True, help_text="how long ago that is"),
    not_counted=many_texts(),
    branches_behind=count_or_null(),
    together=LossAnswer(allow_null=True),
)


# --- garbage collection -----------------------------------------------------------------------------------------------


class GoneThingAnswer(serializers.Serializer):
    """A thing that is gone at the source."""

    kind = serializers.CharField()
    path = text_or_null()
    address = serializers.CharField(allow_blank=True)
    first_seen = serializers.DateTimeField()


class GoneHeadAnswer(serializers.Serializer):
    """A branch whose head lacks something that is gone."""

    branch = serializers.CharField()
    commit = serializers.CharField()


class GoneAnswer(serializers.Serializer):
    """What is gone at the source, and has not arrived."""

    objects = serializers.IntegerField()
    ranges = serializers.IntegerField()
    metaranges = serializers.IntegerField()
    commits = serializers.IntegerField()
    heads = GoneHeadAnswer(many=True)
    since = time_or_null()
    examples = GoneThingAnswer(many=True)


class UnreachedTogetherAnswer(serializers.Serializer):
    """All of the pending commits that no branch of the source leads to any more; more of them with `at_least`."""

    commits = serializers.IntegerField()
    at_least = serializers.BooleanField()
    objects = serializers.IntegerField(allow_null=True, help_text="null while there are `unchecked_commits`")
    bytes = count_or_null()
    unchecked_commits = serializers.IntegerField()
    since = time_or_null()


class UnreachedAnswer(serializers.Serializer):
    """Such a commit: the branch that led to it, why it does not any more, since when."""

    commit = serializers.CharField()
    data = serializers.CharField()
    seen_at = time_or_null()
    branch = serializers.CharField()
    why = serializers.CharField()
    since = serializers.DateTimeField()


UnreachedPageAnswer = page_with(
    UnreachedAnswer,
    as_of=serializers.DateTimeField(allow_null=True, help_text="when the source was last checked"),
    retention_days=serializers.IntegerField(
        allow_null=True, help_text="null: the source has no rules of garbage collection, or see `not_known`"
    ),
    branch_retention_days=serializers.DictField(
        child=serializers.IntegerField(), help_text="of the branches with a retention of their own"
    ),
    rules_read_at=serializers.DateTimeField(allow_null=True, help_text="when the rules of both sides were read"),
    warnings=many_texts(),
    not_known=many_texts(),
    gone=GoneAnswer(),
    unreached=UnreachedTogetherAnswer(allow_null=True),
)
