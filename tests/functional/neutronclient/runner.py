"""Runs in the virtual environment of python-neutronclient, and knows nothing of ours.

For each line on standard input, a JSON list of words, it runs ``neutron`` with these words in a process of its own and answers
with a JSON object: exit code, standard output and standard error. The client is imported once, which takes longer than
all commands.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

from neutronclient import shell


def main() -> None:
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                os._exit(_neutron(json.loads(line), out.fileno(), err.fileno()))
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            answer = {"code": os.waitstatus_to_exitcode(status), "out": out.read(), "err": err.read()}
        print(json.dumps(answer), flush=True)


def _neutron(words: list[str], out: int, err: int) -> int:
    os.dup2(out, 1)
    os.dup2(err, 2)
    try:
        code = shell.main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code or 0)


main()
