"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT, functions, imported, trees


def test_imports_keep_the_contracts_of_pyproject():
    command = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[run.stdout.find("Broken contracts") :] + run.stderr


def test_only_extensions_imports_stevedore():
    users = {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if any(n.startswith("stevedore") for n in imported(node))
    }
    assert users <= {"lbaas_scheduler/extensions.py"}


def test_nothing_below_cmd_reads_the_global_configuration():
    """``cfg.CONF`` in an expression, or imported by name."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        if not path.startswith("lbaas_scheduler/cmd/")
        for node in ast.walk(tree)
        if _is_global_conf(node)
    ]
    assert found == []


def _is_global_conf(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "CONF" and isinstance(node.value, ast.Name) and node.value.id == "cfg"
    return "oslo_config.cfg.CONF" in imported(node)


def test_no_function_imports():
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for function in functions(tree)
        for node in ast.walk(function)
        if imported(node)
    ]
    assert found == []


@pytest.mark.parametrize("library", ["eventlet", "greenlet", "pbr", "six", "mock"])
def test_a_library_of_the_past_stays_out(library):
    assert _importers_of(library) == set()


def _importers_of(library: str) -> set[str]:
    return {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        for name in imported(node)
        if name.split(".")[0] == library
    }
