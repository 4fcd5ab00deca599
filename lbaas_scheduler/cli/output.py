"""What every command owes to whatever reads its output."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

READER_GONE = 141
"""The exit code of a program that SIGPIPE ended, which is how ``head`` ends those that it has heard enough of."""


def for_readers(main: Callable[P, int]) -> Callable[P, int]:
    """``main``, such that characters that the output's encoding has not are escaped, and that it ends without a word when nobody
    reads any more."""

    @functools.wraps(main)
    def run(*arguments: P.args, **named: P.kwargs) -> int:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            try:
                return main(*arguments, **named)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # Python writes what is left once more when it ends, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return READER_GONE

    return run
