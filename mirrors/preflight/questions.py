"""What is asked about a planned mirror: calls by question, in two rounds, of which the second needs the first.

A question that can't be asked, for something that it needs is not known, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from adapters.s3.write_probe import probe_upload
from core.errors import NotFound
from core.installations.preflight import NotAsked
from core.installations.preflight_hooks import Hooked
from core.installations.unreplicated_objects import Namespaces
from core.installations.webhook_action import ACTION_FILE, HOLD_FILE
from core.listing import branch_heads
from core.mirroring.branch_selection import ALL, Selection
from core.ports import LakeFS, ObjectStore
from core.types import Commit, RepositoryInfo
from deployment.wiring import clients
from installations.permission_probes import NOWHERE, Target, only_reads, target_at_destination, tries_of
from installations.probes import Answers, Calls, _is_namespace, _list, about_bucket, is_name, may_ask
from mirrors.preflight.hooked_branches import hooked_branches
from mirrors.preflight.unreplicated import Route, count_and_sample
from mirrors.services import placement
from mirrors.services.adoption import check_adoptable

T = TypeVar("T")

COUNTED_SECONDS = 3.0
"""So long what was never replicated is counted: somebody types meanwhile."""
PROBE_SECONDS = 6.0
SHOWING = 3
"""So many repositories of the destination are asked where its metadata is."""
TRIED_KEYS = 3
"""So many keys that a listing of the destination lacks are asked for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A mirror that somebody thinks of. "" is what isn't filled in yet. `managed`: it brings its objects itself;
    `holds`: merges are held for it; `follows_gc`: it deletes what the source's garbage collection took."""

    source_repository: str
    source_region: str
    name: str
    region: str
    storage_namespace: str
    include: tuple[str, ...] = ALL
    exclude: tuple[str, ...] = ()
    tags: bool = False
    adopt: bool = False
    managed: bool = False
    holds: bool = False
    follows_gc: bool = False
    depth: str = ""
    rpo_seconds: str = ""
    """These two ask nothing: they are only repeated in the call and the command that make what was typed."""

    @property
    def namespace(self) -> str:
        """As it would be stored."""
        return self.storage_namespace.rstrip("/")


def first_round(plan: Plan) -> Calls:
    """Of both installations."""
    return {
        "source": _at(plan.source_region, lambda lakefs: lakefs.server()),
        "destination": _at(plan.region, lambda lakefs: lakefs.server()),
        "others": _at(plan.region, lambda lakefs: list(placement.repositories_of(lakefs, plan.region))),
        **(first_of_source(plan) if is_name(plan.source_repository) else {}),
        **({"existing": _at(plan.region, partial(_find_repository, name=plan.name))} if is_name(plan.name) else {}),
    }


def first_of_source(plan: Plan) -> Calls:
    """Of a source whose name can be one: the repository and its branches."""
    return {
        "repository": _at(plan.source_region, lambda lakefs: lakefs.get_repository(plan.source_repository)),
        "branches": _at(plan.source_region, partial(branch_heads, repository=plan.source_repository)),
    }


def _at(region: str, call: Callable[[LakeFS], T]) -> Callable[[], T]:
    """The call at a region's lakeFS; one that isn't configured is an answer like another."""
    return lambda: call(clients.quick_lakefs(region))


def _find_repository(lakefs: LakeFS, name: str) -> RepositoryInfo | None:
    try:
        return lakefs.get_repository(name)
    except NotFound:
        return None


def second_round(plan: Plan, known: Answers, *, writing: bool = False) -> Calls:
    """Of what was found there, and of the stores; `known` are the first round's answers. `writing`: with a probe."""
    source = known.get("repository")
    found = isinstance(source, RepositoryInfo)
    return {
        **(_about_source(plan, source, known["branches"]) if found and may_ask(plan.source_region) else {}),
        **(_about_destination(plan, known) if may_ask(plan.region) else {}),
        **(_probe(plan) if writing and plan.managed and may_ask(plan.region) else {}),
        **(_about_adoption(plan, source, known.get("existing")) if found and plan.adopt else {}),
    }


def _about_source(plan: Plan, source: RepositoryInfo, heads: Any) -> Calls:
    lakefs, store = clients.quick_lakefs(plan.source_region), clients.quick_objects(plan.source_region)
    head = heads.get(source.default_branch, NOWHERE) if isinstance(heads, dict) else NOWHERE
    return {
        **_trying("source", lakefs, Target(source.id, source.default_branch, head), plan),
        **about_bucket("source", store, source.storage_namespace),
        "rules": partial(store.replication_rules, source.storage_namespace),
        "head": partial(_head, lakefs, source),
        "source-rules": partial(lakefs.gc_rules, source.id),
        "source-metadata": partial(_shows_metadata, lakefs, store, [source]),
        **(_about_hooks(plan, source, heads) if isinstance(heads, dict) else {}),
    }


def _about_hooks(plan: Plan, source: RepositoryInfo, heads: dict[str, str]) -> Calls:
    """Changes are told of mirrored branches; about a merge the branch asks that is merged, whichever it is."""
    calls: Calls = {"webhook": partial(_hooked_of_mirrored, plan, source, heads)}
    if plan.holds:
        calls["hold-file"] = partial(hooked_branches, source, plan.source_region, heads, HOLD_FILE)
    return calls


def _hooked_of_mirrored(plan: Plan, source: RepositoryInfo, heads: dict[str, str]) -> Hooked:
    selection = Selection(source.default_branch, plan.include, plan.exclude)
    mirrored = {name: heads[name] for name in heads if name in selection}
    return hooked_branches(source, plan.source_region, mirrored, ACTION_FILE)


def _about_destination(plan: Plan, known: Answers) -> Calls:
    lakefs, store = clients.quick_lakefs(plan.region), clients.quick_objects(plan.region)
    calls = about_bucket("destination", store, plan.namespace) if _is_namespace(plan.namespace) else {}
    if calls:
        calls["lifecycle"] = partial(store.lifecycle_rules, plan.namespace)
    source = known.get("repository")
    if calls and isinstance(source, RepositoryInfo) and may_ask(plan.source_region):
        calls["destination-proxy"] = partial(_shown_for_another, plan, source)
        route = Route(Namespaces(source.storage_namespace.rstrip("/"), plan.namespace), plan.source_region, plan.region)
        calls["unreplicated"] = partial(count_and_sample, route, COUNTED_SECONDS)
    if isinstance(known["others"], list):
        showing = [other for other in known["others"] if other.id != plan.name][:SHOWING]
        calls["destination-metadata"] = partial(_shows_metadata, lakefs, store, showing)
    if is_name(plan.name):
        tries = _trying("destination", lakefs, target_at_destination(plan.name), plan)
        calls |= {key: call for key, call in tries.items() if _may_try(plan, known["existing"], key)}
    return calls


def _probe(plan: Plan) -> Calls:
    if not _is_namespace(plan.namespace):
        return {}
    store = clients.quick_bulk_objects(plan.region)
    return {"destination-probe": partial(probe_upload, store, plan.namespace, seconds=PROBE_SECONDS)}


def _about_adoption(plan: Plan, source: RepositoryInfo, existing: Any) -> Calls:
    if not isinstance(existing, RepositoryInfo):
        return {}
    calls: Calls = {"own-rules": _at(plan.region, lambda lakefs: lakefs.gc_rules(plan.name))}
    checked = partial(check_adoptable, existing, plan.region, plan.namespace, source, plan.source_region)
    return calls | {"adoptable": checked}


def _trying(side: str, lakefs: LakeFS, target: Target, plan: Plan) -> Calls:
    tries = tries_of(side, tags=plan.tags, follows_gc=plan.follows_gc)
    return {f"{side}-right:{action}": partial(call, lakefs, target) for action, call in tries.items()}


def _may_try(plan: Plan, existing: Any, key: str) -> bool:
    """Calls that would write are for a free name, or the mirror to adopt: never for others' repositories."""
    free = existing is None or (plan.adopt and isinstance(existing, RepositoryInfo) and existing.read_only)
    return free or only_reads(key.partition(":")[2])


def _shown_for_another(plan: Plan, source: RepositoryInfo) -> str:
    """A key that the source has and the destination has not, but shows to others; "" if it shows none of these."""
    store = clients.quick_objects(plan.region)
    for key in _only_at_source(plan, source):
        shown = store.proxies(f"{plan.namespace}/{key}")
        if shown is not None:
            return key if shown else ""
    if not store.replication_rules(plan.namespace):
        return ""  # there is nobody whom it could ask
    raise NotAsked("no object was found that only the source has, so this can't be tried")


def _only_at_source(plan: Plan, source: RepositoryInfo) -> Iterator[str]:
    """Keys of the source that may not have arrived, likeliest first: its newest metarange, and what listings lack."""
    lakefs, store = clients.quick_lakefs(plan.source_region), clients.quick_objects(plan.source_region)
    place = source.storage_namespace.rstrip("/")
    try:
        newest = f"_lakefs/{_head(lakefs, source).metarange_id}"
    except NotFound:  # a bare repository
        return
    if store.head(f"{place}/{newest}") is not None:
        yield newest
    arrived = set(_list(clients.quick_objects(plan.region), plan.namespace).keys)
    yield from islice((key for key in _list(store, place).keys if key not in arrived), TRIED_KEYS)


def _head(lakefs: LakeFS, repository: RepositoryInfo) -> Commit:
    branch = lakefs.get_branch(repository.id, repository.default_branch)
    return lakefs.get_commit(repository.id, branch.commit_id)


def _shows_metadata(lakefs: LakeFS, store: ObjectStore, repositories: Iterable[RepositoryInfo]) -> bool:
    """Whether the metarange of the first of these repositories that has one is where it should be."""
    for repository in repositories:
        try:
            head = _head(lakefs, repository)
        except NotFound:  # a bare repository
            continue
        if head.metarange_id:
            place = repository.storage_namespace.rstrip("/")
            return store.head(f"{place}/_lakefs/{head.metarange_id}") is not None
    raise NotAsked("no repository there has a commit to check it with")
