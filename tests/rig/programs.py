"""Which programs the tests run. On a machine where nothing was installed by hand, only those that tools/install-services
names are there: a test that runs another one passes on its author's machine alone.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"<<'TABLE'\n(.*?)^TABLE$", re.DOTALL | re.MULTILINE)

OURS = (sys.prefix, sysconfig.get_path("scripts"), str(ROOT), tempfile.gettempdir())
"""Whatever lies below these came with the virtual environment or the checkout, or is made by a test."""

_unknown: set[str] = set()


@cache
def named() -> frozenset[str]:
    """The programs that tools/install-services installs."""
    found = TABLE.search((ROOT / "tools" / "install-services").read_text())
    assert found, "tools/install-services has no table of programs"
    return frozenset(name for line in found[1].splitlines() for words in line.split()[1:] for name in words.split("|"))


def is_known(program: str) -> bool:
    """:param program: a name or a path, as it is run."""
    path = os.path.abspath(program) if os.sep in program else program
    return os.path.basename(program) in named() or path.startswith(OURS) or path == os.path.abspath(sys.executable)


def watch() -> None:
    """Note what this process runs from now on. There is no way back: Python keeps its audit hooks."""
    sys.addaudithook(_note_call)


def note(command: Iterable[str]) -> None:
    """A command that is run in another way than by this process itself."""
    program = next(iter(command))
    if not is_known(program):
        _unknown.add(program)


def take_unknown() -> list[str]:
    """Programs that were run since the last call and that nobody installs, ordered."""
    found = sorted(_unknown)
    _unknown.clear()
    return found


def _note_call(event: str, arguments: tuple[object, ...]) -> None:
    if event != "subprocess.Popen":
        return
    executable, command = arguments[:2]
    first = executable or (command if isinstance(command, str | bytes | os.PathLike) else next(iter(command), ""))  # type: ignore[call-overload]
    note([os.fsdecode(first)])  # type: ignore[arg-type]
