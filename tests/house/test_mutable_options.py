"""An option that may be changed without a restart must be read when it is used, not when the process is put together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lbaas_scheduler.conf import opts
from tests.house.sources import functions, trees

BUILDERS = ("__init__", "build")

READ_AGAIN = {("lbaas_scheduler/devices/monitor.py", "check_timeout_seconds")}
"""Read by a constructor as well, for a default that each use replaces by the value of the moment."""


def test_a_mutable_option_is_read_when_it_is_used():
    mutable = {(group, option.name) for group, options in opts.list_opts() for option in options if option.mutable}
    assert ("scheduler", "reconcile_interval_seconds") in mutable
    frozen = [
        f"{path}: [{group}] {name}"
        for path, tree in trees().items()
        for group, name in _read_once(path, tree)
        if (group, name) in mutable and (path, name) not in READ_AGAIN
    ]
    assert frozen == []


def test_options_that_are_read_but_once_are_found():
    source = "class It:\n    def __init__(self, conf):\n        self.a = conf.g.a\n        self.b = lambda: conf.g.b\n"
    assert list(_read_once("it.py", ast.parse(source))) == [("g", "a")]
    assert list(_read_once("cmd/it.py", ast.parse("def any(parts):\n    return parts.conf.g.c\n"))) == [("g", "c")]


def _read_once(path: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(group, option) of each ``conf.<group>.<option>`` that runs but once in the life of a process."""
    puts_together = "cmd/" in path or path.endswith("build.py")
    for scope in [tree] if puts_together else [it for it in functions(tree) if it.name in BUILDERS]:
        yield from _options_read(scope)


def _options_read(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
        *_, holder = ast.unparse(node.value.value).split(".")
        if holder in ("conf", "_conf"):
            yield node.value.attr, node.attr
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _options_read(child)
