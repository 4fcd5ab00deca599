"""Where ``lbaas-scheduler`` begins, whether what it needs is installed or not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from lbaas_scheduler.cli.output import for_readers

PROG = "lbaas-scheduler"

LIBRARIES = ("cliff", "keystoneauth1")
"""What the extra ``cli`` brings and each command needs."""


@for_readers
def main(argv: Sequence[str] | None = None) -> int:
    """:returns: 0 if the command did what it says, 2 if it was called wrongly, else 1."""
    try:
        shell = importlib.import_module("lbaas_scheduler.cli.shell")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in LIBRARIES:
            raise
        print(f"{PROG}: {error.name} is not installed; install it with: pip install 'lbaas-scheduler[cli]'", file=sys.stderr)
        return 1
    code: int = shell.run(list(sys.argv[1:] if argv is None else argv))
    return code


if __name__ == "__main__":
    sys.exit(main())
