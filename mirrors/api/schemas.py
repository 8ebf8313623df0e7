"""The shapes of the API's answers about mirrors, for its document. What fills them stands in readings and serializers.

A field that may be unknown is null then, and always there.
"""

from __future__ import annotations

from enum import StrEnum

from rest_framework import serializers

from core.bringing import ObjectReplication
from core.installations.outages import OutageKind, Service
from core.mirroring.object_check import Depth, Imported
from core.mirroring.promotion import Repair
from core.mirroring.source_moves import FirstSync
from mirrors.api.serializers import MirrorSettings
from web.pauses import PauseAnswer
from web.schemas import CheckAnswer, count_or_null, text_or_null, time_or_null


class ThingAnswer(serializers.Serializer):
    """One thing that is missing or wrong at a mirror."""

    id = serializers.IntegerField()
    kind = serializers.CharField(help_text="object, range, metarange or record")
    path = text_or_null()
    address = serializers.CharField(allow_blank=True)
    size = count_or_null()
    etag = text_or_null()
    reason = serializers.CharField()
    detail = serializers.CharField(allow_blank=True)
    gone_at_source = serializers.BooleanField()
    waived = serializers.BooleanField(help_text="history may lack it: somebody waived it; a branch's head needs it")
    cause = serializers.CharField(allow_null=True, help_text="why the stores' replication has not brought it")
    cause_message = serializers.CharField(allow_null=True, help_text="the same in a sentence")
    cause_fix = serializers.CharField(allow_null=True, help_text="what to do about it")
    damage = serializers.BooleanField(help_text="what needs it was complete before")
    holder_kind = text_or_null()
    holder = serializers.CharField(help_text="the commit, metarange or range that needs it")
    first_seen = serializers.DateTimeField()
    attempts = serializers.IntegerField()
    look_at = time_or_null()


class BranchAnswer(serializers.Serializer):
    """One branch at one mirror; `blockers` are some of `blockers_total`."""

    name = serializers.CharField()
    source_head = text_or_null()
    mirror_head = text_or_null()
    inferred = serializers.BooleanField()
    pending_commits = serializers.IntegerField(
        help_text="that the source's branch pointed to, and the mirror's has not reached; merged commits don't count, "
        "and two branches may both count one"
    )
    lag_seconds = serializers.FloatField(allow_null=True)
    status = serializers.CharField()
    reason_code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()
    oldest_pending_seen_at = time_or_null()
    advanced_at = time_or_null()
    retry_at = time_or_null()
    blockers_total = serializers.IntegerField()
    blockers = ThingAnswer(many=True)


class SelectedAnswer(serializers.Serializer):
    """Which branches of the source the mirror follows, and how many it does not."""

    include = serializers.ListField(child=serializers.CharField())
    exclude = serializers.ListField(child=serializers.CharField())
    left_out = serializers.IntegerField()


def _known(words: type[StrEnum]) -> str:
    return " or ".join(f"`{word.value}`" for word in words)


class CauseAnswer(serializers.Serializer):
    """Why the stores' replication has not brought some files of a mirror; so many of them, among the first 10,000."""

    cause = serializers.CharField()
    number = serializers.IntegerField()
    message = serializers.CharField()
    fix = text_or_null()


class ReplicationAnswer(serializers.Serializer):
    """What the source's store told of the files that a mirror waits for, the most frequent cause first."""

    as_of = serializers.DateTimeField()
    store = serializers.CharField(help_text="aws, minio or other")
    causes = CauseAnswer(many=True)


class AskingAnswer(serializers.Serializer):
    """Who had LakeMirror copy something once, and when that ends at the latest."""

    asked_by = text_or_null()
    asked_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(help_text="at the latest")


class BringingAnswer(AskingAnswer):
    """What LakeMirror copies once, in place of the stores: what was missing when somebody asked for it. It ends as soon
    as all of it is there, at the latest after 24 hours."""

    what = serializers.ChoiceField(["all", "chosen"], help_text="`all` that was missing then, or chosen objects")
    missing = serializers.IntegerField(
        help_text="objects that are still to be copied, as far as they are known; at most 10,000"
    )
    wrong = serializers.IntegerField(
        help_text="objects with other content that are still to be replaced; at most 10,000"
    )
    all = AskingAnswer(
        allow_null=True,
        help_text="who asked for all that was missing, if somebody has asked for chosen objects later, which end later",
    )
    held = serializers.BooleanField(
        help_text="nothing is copied while the mirror is paused or stopped, or its source frozen"
    )


class RegionOutageAnswer(serializers.Serializer):
    """The lakeFS or the store of a region that does not answer."""

    region = serializers.CharField()
    service = serializers.ChoiceField([service.value for service in Service])
    status = serializers.ChoiceField([kind.value for kind in OutageKind])
    since = serializers.DateTimeField()
    reason = serializers.CharField()
    problem = serializers.CharField(allow_blank=True, help_text="the result of the last call")


class MirrorAnswer(MirrorSettings, PauseAnswer):
    """A mirror: its settings, and what is known of it now. A newer version may add words to those that are known."""

    validation_depth = serializers.CharField(help_text=_known(Depth))
    imported = serializers.CharField(help_text=_known(Imported))
    first_sync = serializers.CharField(help_text=_known(FirstSync))
    repair_tampering = serializers.CharField(help_text=_known(Repair))
    id = serializers.CharField()
    name = serializers.CharField()
    source_repository = serializers.CharField()
    source_region = serializers.CharField()
    region = serializers.CharField()
    storage_namespace = serializers.CharField()
    object_replication = serializers.CharField(help_text=_known(ObjectReplication))
    copied_objects = serializers.IntegerField(help_text="objects that LakeMirror has copied for it so far")
    copied_bytes = serializers.IntegerField()
    replication = ReplicationAnswer(allow_null=True, help_text="null: nothing is awaited, or nobody has asked yet")
    bringing = BringingAnswer(
        allow_null=True, help_text="null: nobody has LakeMirror copy anything in place of the stores, or it has ended"
    )
    selected_branches = SelectedAnswer()
    history = serializers.CharField()
    status = serializers.CharField()
    reason_code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()
    outages = RegionOutageAnswer(many=True, help_text="of services of its own region and of its source's")
    branches = BranchAnswer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    source_looked_at = time_or_null()
    destination_looked_at = time_or_null()
    created_at = serializers.DateTimeField()
    as_of = serializers.DateTimeField()


class MirrorChangedAnswer(MirrorAnswer):
    """The same, and what the settings that were switched on ask for."""

    checks = CheckAnswer(
        many=True, help_text="of its settings, as GET `preflight`; empty unless this change asks for any"
    )


PromotionAnswer = type(
    "PromotionAnswer",
    (serializers.Serializer,),
    {
        "__doc__": "One move of a branch or a tag. No commit: there was none before, or is none after.",
        "id": serializers.IntegerField(),
        "branch": text_or_null(),
        "tag": text_or_null(),
        "from": text_or_null(),
        "to": text_or_null(),
        "why": serializers.CharField(),
        "at": serializers.DateTimeField(),
    },
)


class TagAnswer(serializers.Serializer):
    """A tag at both sides."""

    name = serializers.CharField()
    source_commit = text_or_null()
    mirror_commit = text_or_null()
    status = serializers.CharField()
