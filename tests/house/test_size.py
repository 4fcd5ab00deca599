"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast

from tests.house.sources import ROOT, functions, trees

FILE_LINES = 400
FUNCTION_LINES = 40
EXCUSE = "# long: "
"""A comment that starts so, inside a function, says why it may be longer."""


def test_no_file_is_longer_than_400_lines():
    # Migrations are lists of columns, written once and never touched again.
    paths = [path for path in trees() if "/migrations/versions/" not in path]
    lengths = {path: (ROOT / path).read_text().count("\n") for path in paths}
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_40_lines_without_a_reason():
    """Its docstring does not count: it is there for the callers, not for whoever reads the code."""
    found = {}
    for path, tree in trees().items():
        if "/migrations/versions/" in path:  # lists of columns, written once and never touched again
            continue
        text = (ROOT / path).read_text().splitlines()
        for function in functions(tree):
            source = text[function.lineno - 1 : function.end_lineno]
            lines = len(source) - _docstring_lines(function)
            if lines > FUNCTION_LINES and not any(EXCUSE in line for line in source):
                found[f"{path}:{function.lineno} {function.name}"] = lines
    assert found == {}


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(function) is None:
        return 0
    first = function.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1
