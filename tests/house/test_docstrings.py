"""Whoever writes for the interface to vendors finds each piece of it described where it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import trees


def test_each_public_piece_of_the_sdk_says_what_it_is():
    # The conformance suite is run, not called.
    paths = [path for path in trees() if path.startswith("lbaas_scheduler/sdk/") and "/conformance/" not in path]
    assert len(paths) > 5
    assert [f"{path}: {name}" for path in paths for name in _silent(trees()[path])] == []


def _silent(node: ast.Module | ast.ClassDef, place: str = "") -> Iterator[str]:
    for piece in node.body:
        if not isinstance(piece, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or piece.name.startswith("_"):
            continue
        if ast.get_docstring(piece) is None:
            yield f"{place}{piece.name}"
        if isinstance(piece, ast.ClassDef):
            yield from _silent(piece, f"{place}{piece.name}.")
