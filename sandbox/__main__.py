"""`python -m sandbox up` starts the sandbox, `python -m sandbox ctl ...` tells a running one what to do."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sandbox.client import DEFAULT_FOLDER, Sandbox, SandboxError
from sandbox.faults import Mode
from sandbox.layout import REGION_NAMES

KINDS = ("data", "range", "metarange")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; gives the exit code."""
    options = _parser().parse_args(arguments)
    return int(options.run(options) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="Regions in miniature.")
    commands = parser.add_subparsers(required=True)
    _up_arguments(commands.add_parser("up", help="start the regions and the replication between them"))
    ctl = commands.add_parser("ctl", help="tell a running sandbox what to do")
    ctl.add_argument("--control", default="", metavar="URL", help="its control address")
    ctl.add_argument("--dir", type=Path, help="the folder that it was started in")
    ctl.set_defaults(run=_ctl)
    _ctl_arguments(ctl.add_subparsers(required=True))
    return parser


def _up_arguments(parser: argparse.ArgumentParser) -> None:
    flag = argparse.BooleanOptionalAction
    hook = {name: os.environ.get(f"LAKEMIRROR_SANDBOX_HOOK_{name}", "") for name in ("URL", "SECRET")}
    parser.add_argument("--dir", type=Path, default=DEFAULT_FOLDER, help="for lakemirror.yaml and sandbox.json")
    number = len(REGION_NAMES)
    regions = "how many of " + ", ".join(REGION_NAMES)
    parser.add_argument("--regions", type=int, choices=range(2, number + 1), default=number, help=regions)
    parser.add_argument("--seed", type=int, default=1, help="of what the companies do")
    parser.add_argument("--company", action=flag, default=True, help="somebody keeps committing")
    parser.add_argument("--history", action=flag, default=True, help="the repositories with a first history")
    parser.add_argument("--interval", type=float, default=4.0, metavar="SECONDS", help="between a company's steps")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="of replication")
    parser.add_argument("--free-ports", action="store_true", help="any ports; sandbox.json tells which")
    told = "webhook that is told of each commit; the region's name is added to it"
    parser.add_argument("--hook-url", default=hook["URL"], metavar="URL", help=told)
    parser.add_argument("--hook-secret", default=hook["SECRET"], metavar="SECRET", help="its Bearer secret")
    parser.add_argument("--lakefs", default=None, metavar="PROGRAM", help="a real lakeFS in place of the stand-in")
    parser.add_argument("--extra-bucket", action="append", default=[], metavar="NAME", help="one more, in each region")
    parser.add_argument(
        "--name-lag", type=float, default=0.0, metavar="SECONDS", help="a deleted repository's name stays known so long"
    )
    denied = "no writes below this BUCKET/PREFIX, in each region, until it is allowed"
    parser.add_argument("--deny", action="append", default=[], metavar="PLACE", help=denied)
    parser.add_argument(
        "--unreplicated",
        action="append",
        default=[],
        metavar="FROM:TO",
        help="regions between which nothing is replicated",
    )
    parser.set_defaults(run=_up)


def _up(options: argparse.Namespace) -> int:
    from sandbox import real_lakefs
    from sandbox.up import CantStart, Options, up

    logging.basicConfig(level=logging.INFO, format="sandbox: %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    told = Options(
        folder=options.dir,
        regions=options.regions,
        seed=options.seed,
        company=options.company,
        history=options.history,
        interval=options.interval,
        delay=options.delay,
        free_ports=options.free_ports,
        hook_url=options.hook_url,
        hook_secret=options.hook_secret,
        lakefs=real_lakefs.binary() if options.lakefs is None else options.lakefs,
        extra_buckets=tuple(options.extra_bucket),
        name_lag=options.name_lag,
        denied=tuple(options.deny),
        unreplicated=frozenset(options.unreplicated),
    )
    try:
        up(told)
    except CantStart as problem:
        print(f"sandbox: {problem}", file=sys.stderr)
        return 1
    return 0


_RULES = {
    "hold": "hold objects back until they are released",
    "lose": "lose objects on their way",
    "corrupt": "change the bytes of objects on their way",
}
_PLAIN_HELP = {
    "stop": "stop all replication",
    "start": "start replication again",
    "heal": "end all faults and rules",
    "pause": "pause the company: no new commits",
    "resume": "resume the company",
    "wait": "wait until everything is replicated",
    "status": "print rules, faults and what is on its way, as JSON",
}


def _ctl_arguments(commands: Any) -> None:
    for action in ("hold", "lose", "corrupt"):
        parser = commands.add_parser(action, help=_RULES[action])
        _which(parser)
        parser.add_argument("--count", type=int, default=-1, help="at most this many objects")
        parser.set_defaults(tell=_rule(action))
    release = commands.add_parser("release", help="end these rules and deliver what they held back or lost")
    _which(release)
    release.set_defaults(tell=_release)
    delay = commands.add_parser("delay", help="delay every delivery")
    delay.add_argument("seconds", type=float)
    delay.add_argument("--jitter", type=float, default=0.0)
    delay.set_defaults(tell=lambda box, o: box.delay(o.seconds, jitter=o.jitter))
    order = commands.add_parser("order", help="order of delivery")
    order.add_argument("order", choices=("fifo", "random", "reverse", "metadata-first", "data-first"))
    order.set_defaults(tell=lambda box, o: box.order(o.order))
    fault = commands.add_parser("fault", help="make a service of a region fail")
    fault.add_argument("region")
    fault.add_argument("service", choices=("s3", "lakefs"))
    fault.add_argument("mode", choices=[mode.value for mode in Mode])
    fault.add_argument("--seconds", type=float, default=0.0, help="how late `slow` answers; faults last until `heal`")
    fault.set_defaults(tell=lambda box, o: box.server_faults(o.region, o.service, o.mode, seconds=o.seconds))
    _policy_arguments(commands)
    step = commands.add_parser("step", help="make the company commit something now")
    step.add_argument("count", type=int, nargs="?", default=1)
    step.set_defaults(tell=lambda box, o: "\n".join(box.company_step(o.count)))
    for name, tell in _PLAIN.items():
        commands.add_parser(name, help=_PLAIN_HELP[name]).set_defaults(tell=tell)


def _policy_arguments(commands: Any) -> None:
    deny = commands.add_parser("deny", help="deny an action by a bucket's policy, in every region that has it")
    deny.add_argument("place", metavar="BUCKET[/PREFIX]")
    deny.add_argument("--action", default="s3:PutObject", help="s3:PutObject (the default), s3:GetObject, ...")
    deny.set_defaults(tell=lambda box, o: box.deny(o.place, o.action))
    allow = commands.add_parser("allow", help="remove the denials of a bucket's policy")
    allow.add_argument("bucket")
    allow.set_defaults(tell=lambda box, o: box.allow(o.bucket))


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", default="*", help="glob over whole keys, e.g. 'lake/data/*'")
    parser.add_argument("--kind", choices=KINDS, default="", help="only objects of this kind")
    parser.add_argument("--to", default="", metavar="REGION", help="only deliveries to this region")


def _rule(action: str) -> Callable[[Sandbox, argparse.Namespace], None]:
    return lambda box, o: getattr(box, action)(o.pattern, kind=o.kind, count=o.count, destination=o.to)


def _release(box: Sandbox, told: argparse.Namespace) -> str:
    number = box.release(told.pattern, kind=told.kind, destination=told.to)
    return f"{number} {'object' if number == 1 else 'objects'} released"


_PLAIN: dict[str, Callable[[Sandbox, argparse.Namespace], object]] = {
    "stop": lambda box, _: box.stop(),
    "start": lambda box, _: box.start(),
    "heal": lambda box, _: box.heal(),
    "pause": lambda box, _: box.pause_company(),
    "resume": lambda box, _: box.resume_company(),
    "wait": lambda box, _: "settled" if box.wait_replicated() else "still behind",
    "status": lambda box, _: json.dumps(box.status(), indent=2),
}


def _ctl(options: argparse.Namespace) -> int:
    try:
        box = Sandbox(options.control) if options.control else Sandbox.find(options.dir)
        said = options.tell(box, options)
    except SandboxError as problem:
        print(f"sandbox: {problem}", file=sys.stderr)
        return 1
    print(said or "done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
