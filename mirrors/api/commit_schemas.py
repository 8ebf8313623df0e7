"""The shapes of the API's answers about commits, for its document."""

from __future__ import annotations

from rest_framework import serializers

from mirrors.api.schemas import RegionOutageAnswer, ThingAnswer
from mirrors.status.commit_json import STAGES
from web.schemas import many_texts, number_or_null, text_or_null, time_or_null


class WaivedAnswer(serializers.Serializer):
    """Who accepted that a commit is unreadable, and why."""

    given_by = serializers.CharField()
    reason = serializers.CharField()
    given_at = time_or_null()


class StepAnswer(serializers.Serializer):
    """One step on a commit's way, and when it was taken."""

    step = serializers.CharField()
    name = serializers.CharField()
    at = time_or_null()


class CommitAnswer(serializers.Serializer):
    """A commit at a mirror. `history`: all that it descends from is in order."""

    id = serializers.CharField()
    parents = many_texts()
    message = serializers.CharField(allow_blank=True)
    committer = serializers.CharField(allow_blank=True)
    created_at = time_or_null()
    metarange = text_or_null()
    record = serializers.CharField()
    data = serializers.CharField()
    history = serializers.BooleanField()
    promotable = serializers.BooleanField()
    waived = WaivedAnswer(allow_null=True)
    detail = serializers.CharField(allow_blank=True)
    stage = serializers.CharField(help_text=f"the last step that is done: {', '.join(STAGES)}")
    ladder = StepAnswer(many=True)
    recorded_at = time_or_null()
    metadata_at = time_or_null()
    validated_at = time_or_null()
    promoted_at = time_or_null()
    superseded_at = time_or_null()


class CoverageAnswer(serializers.Serializer):
    """How much of a commit is covered by checks that found it complete."""

    ranges = serializers.IntegerField()
    entries = serializers.IntegerField()
    covered_ranges = serializers.IntegerField()
    covered_entries = serializers.IntegerField()
    covered_bytes = serializers.IntegerField()
    depth = serializers.CharField(allow_null=True, help_text="the least one")
    oldest_check_at = time_or_null()
    latest_check_at = time_or_null()
    oldest_check_age_seconds = number_or_null()


class CommitDetailAnswer(CommitAnswer):
    """A commit at a mirror, with what of it is covered and what it waits for. `blockers` are some of `blockers_total`.

    `coverage` is null while the metarange is not at hand.
    """

    coverage = CoverageAnswer(allow_null=True)
    blockers_total = serializers.IntegerField()
    blockers = ThingAnswer(many=True)
    outages = RegionOutageAnswer(
        many=True, help_text="in its region and in its source's: the answer may be out of date"
    )
    as_of = serializers.DateTimeField()


class ToldWaiverAnswer(serializers.Serializer):
    """What somebody accepted as unreadable at the mirror, with the number of commits or the first of the objects."""

    waiver = serializers.IntegerField()
    given_by = serializers.CharField()
    given_at = serializers.DateTimeField()
    reason = serializers.CharField()
    commits = serializers.IntegerField()
    objects = many_texts()
    objects_total = serializers.IntegerField()


class CertificateAnswer(serializers.Serializer):
    """What was proven of a commit. `content_digest` is of what the bytes alone tell, `digest` of all facts."""

    commit = serializers.CharField()
    metarange = serializers.CharField(allow_blank=True)
    ranges = serializers.IntegerField()
    entries = serializers.IntegerField()
    bytes = serializers.IntegerField()
    depth = serializers.CharField()
    method = serializers.CharField()
    region = serializers.CharField()
    storage_namespace = serializers.CharField()
    content_digest = serializers.CharField()
    digest = serializers.CharField()
    as_of = serializers.DateTimeField()
    waivers = ToldWaiverAnswer(many=True, help_text="outside of the digests: the last 20 of the mirror's waivers")


class PlaceAnswer(serializers.Serializer):
    """A repository that may have a commit. `readable` is null where nobody knows; `as_of` is the last look at it."""

    region = serializers.CharField()
    repository = serializers.CharField()
    role = serializers.CharField(help_text="source or mirror")
    readable = serializers.BooleanField(allow_null=True)
    since = time_or_null()
    reason = text_or_null()
    as_of = time_or_null()
