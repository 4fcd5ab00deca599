"""``--wait``: until VIPs are settled, with a bar for whoever looks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lbaas_scheduler.cli.catalogue import VIP
from lbaas_scheduler.cli.client import Client, Document
from lbaas_scheduler.cli.noun import positive
from lbaas_scheduler.cli.problems import Problem, Refused

POLL_SECONDS = 0.5
TIMEOUT_SECONDS = 120

GONE = "gone"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="return when the device has it so")
    parser.add_argument(
        "--wait-timeout",
        type=positive,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="with --wait: give up after so long (default: %(default)s)",
    )


def until_settled(client: Client, vip_id: str, timeout_seconds: float) -> Document:
    """The VIP when nothing of it is pending.

    :raises Problem: it went wrong, went away, or takes longer than ``timeout_seconds``.
    """
    seen: Document = {}

    def settled(_id: str) -> str:
        seen.update(client.get(VIP.one(vip_id))[VIP.key])
        status = str(seen["status"])
        if status == "ERROR":
            raise Problem(f"VIP {vip_id} is in ERROR: {seen['status_description'] or 'its server does not say why'}")
        return "" if status.startswith("PENDING") else status

    _watch([vip_id], settled, timeout_seconds, lambda: f"it is still {seen.get('status')}")
    return seen


def until_gone(client: Client, vip_ids: Sequence[str], timeout_seconds: float) -> None:
    """:raises Problem: one stays for longer than ``timeout_seconds``, or its device refuses to let go of it."""

    def gone(vip_id: str) -> str:
        try:
            vip = client.get(VIP.one(vip_id))[VIP.key]
        except Refused as error:
            if error.status != 404:
                raise
            return GONE
        if vip["status"] == "ERROR":
            raise Problem(f"VIP {vip_id} is in ERROR and stays: {vip['status_description']}")
        return ""

    _watch(vip_ids, gone, timeout_seconds, lambda: "its device has not let go of it")


def _watch(vip_ids: Sequence[str], done: Callable[[str], str], timeout_seconds: float, why: Callable[[], str]) -> None:
    """Ask ``done`` of each until it says something."""
    deadline = time.monotonic() + timeout_seconds
    waiting = list(vip_ids)
    with _progress() as progress:
        task = progress.add_task(f"VIP {', '.join(vip_ids)}" if len(vip_ids) == 1 else "VIPs", total=len(vip_ids))
        while True:
            waiting = [vip_id for vip_id in waiting if not done(vip_id)]
            progress.update(task, completed=len(vip_ids) - len(waiting))
            if not waiting:
                return
            if time.monotonic() >= deadline:
                raise Problem(
                    f"Waited {timeout_seconds:g} s for VIP {waiting[0]}: {why()}. Wait longer with --wait-timeout, or look with "
                    f"'lbaas-scheduler vip show {waiting[0]}'."
                )
            time.sleep(POLL_SECONDS)


def _progress() -> Progress:
    """On standard error: standard output is the command's. Nothing where nobody looks."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    seen = sys.stderr.isatty()
    # A bar that is disabled still ends with a new line in some of rich's versions.
    return Progress(*columns, console=Console(stderr=True, quiet=not seen), transient=True, disable=not seen)
