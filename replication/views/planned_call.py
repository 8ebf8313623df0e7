"""What was typed into the form, as somebody would type it elsewhere: a call of the API, and the command."""

from __future__ import annotations

import json
from shlex import join
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from core.replicating.states import Order
from core.replicating.wishes import SCAN_EVERY, USUAL_METADATA, RuleWish
from web.api_snippets import curl


def api_call(request: HttpRequest, wish: RuleWish) -> str:
    """The curl that creates it."""
    body: dict[str, Any] = {
        "name": wish.name or "NAME",
        "source": {"region": wish.region, "uri": wish.uri or "S3-URI"},
        "targets": [{"region": target.region, "uri": target.uri} for target in wish.targets],
    }
    body |= {"versions": wish.versions} if wish.all_versions else {}
    body |= {"conflict": wish.conflict} if wish.both_ways else {}
    body |= {} if wish.existing else {"existing": False}
    body |= {} if wish.new else {"new": False}
    body |= {"markers": True} if wish.markers else {}
    body |= {"purges": True} if wish.purges else {}
    body |= {} if wish.scan_every == SCAN_EVERY else {"scan_every": wish.scan_every}
    body |= {name: value for name, value, usual in _travelling(wish) if value != usual}
    return curl("POST", request.build_absolute_uri(reverse("api-rules")), json.dumps(body, ensure_ascii=False))


def _travelling(wish: RuleWish) -> list[tuple[str, Any, Any]]:
    """What goes with the bytes: a field, what was typed, and what it is unless told."""
    return [
        ("tags", dict(wish.tags), {}),
        ("metadata", wish.metadata or USUAL_METADATA, USUAL_METADATA),
        ("storage_class", wish.storage_class, ""),
        ("sweep_heads_per_second", wish.sweep_heads_per_second, 0),
        ("priority", wish.priority, 0),
        ("order", wish.order, Order.NEW_FIRST.value),
    ]


def create_command(request: HttpRequest, wish: RuleWish) -> str:
    """The command line that does the same."""
    words = ["--source", wish.region, wish.uri or "S3-URI"]
    for target in wish.targets:
        words += ["--target", target.region, target.uri]
    words += ["--versions", wish.versions] if wish.all_versions else []
    words += ["--conflict", wish.conflict] if wish.both_ways else []
    words += [] if wish.existing else ["--no-existing"]
    words += [] if wish.new else ["--no-new"]
    words += ["--markers"] if wish.markers else []
    words += ["--purges"] if wish.purges else []
    words += [] if wish.scan_every == SCAN_EVERY else ["--scan-every", f"{wish.scan_every // 60}m"]
    for key, value in wish.tags.items():
        words += ["--tag", f"{key}={value}"]
    options = ((f"--{name.replace('_', '-')}", value, usual) for name, value, usual in _travelling(wish)[1:])
    words += [word for option, value, usual in options if value != usual for word in (option, str(value))]
    return rule_command(request, "create", wish.name or "NAME", *words)


def rule_command(request: HttpRequest, verb: str, *words: str) -> str:
    """`lakemirror rule VERB ...` for the LakeMirror at this address."""
    site = request.build_absolute_uri("/").rstrip("/")
    return join(["lakemirror", "rule", verb, *words, "--url", site])
