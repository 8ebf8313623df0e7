"""What LakeMirror remembers: facts about sources and destinations, and checks in hand.

Facts are written by duties (mirroring/), decisions are made from them by pure functions in core/.
"""

from mirrors.models.duty_kinds import MirrorDuty
from mirrors.models.held import HeldMerge
from mirrors.models.history import LagBreach, Measure, Promotion, ReplicationFailure
from mirrors.models.mirror import (
    Mirror,
    MirrorBranch,
    MirrorCommit,
    MirrorTag,
    PlaceLock,
    WaivedObject,
    Waiver,
    all_branches,
)
from mirrors.models.proofs import MetarangeCoverage, MoveIntent
from mirrors.models.source import Candidate, Commit, CommitRecord, Repository, SourceBranch, SourceTag, UnplacedCommit
from mirrors.models.sweep import Sweep
from mirrors.models.validation import Blocker, Coverage, Run, Validation, ValidationRange

__all__ = [
    "Blocker",
    "Candidate",
    "Commit",
    "CommitRecord",
    "Coverage",
    "HeldMerge",
    "LagBreach",
    "Measure",
    "MetarangeCoverage",
    "Mirror",
    "MirrorBranch",
    "MirrorCommit",
    "MirrorDuty",
    "MirrorTag",
    "MoveIntent",
    "PlaceLock",
    "Promotion",
    "ReplicationFailure",
    "Repository",
    "Run",
    "SourceBranch",
    "SourceTag",
    "Sweep",
    "UnplacedCommit",
    "Validation",
    "ValidationRange",
    "WaivedObject",
    "Waiver",
    "all_branches",
]
