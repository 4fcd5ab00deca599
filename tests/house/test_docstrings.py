"""Whoever meets the interface to vendors, its values or the allocator's documents finds each piece described where it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import trees

PLACES = ("lbaas_scheduler/sdk/", "lbaas_scheduler/domain/", "lbaas_scheduler/allocator/api.py")


def test_each_public_piece_says_what_it_is():
    # The conformance suite is run, not called.
    paths = [path for path in trees() if path.startswith(PLACES) and "/conformance/" not in path]
    assert {place for place in PLACES for path in paths if path.startswith(place)} == {*PLACES}
    assert [f"{path}: {name}" for path in paths for name in _silent(trees()[path])] == []


def _silent(node: ast.Module | ast.ClassDef, place: str = "") -> Iterator[str]:
    for piece in node.body:
        if not isinstance(piece, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or piece.name.startswith("_"):
            continue
        if ast.get_docstring(piece) is None:
            yield f"{place}{piece.name}"
        if isinstance(piece, ast.ClassDef):
            yield from _silent(piece, f"{place}{piece.name}.")
