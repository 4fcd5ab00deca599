"""What is built from the sources holds all that runs, and comes out of an archive without git."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import ROOT, imported, trees

SOURCES = ["lbaas_scheduler", "setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"]
NOT_CODE = {".html", ".j2", ".ini", ".mako", ".json", ".yaml"}


pytestmark = pytest.mark.xdist_group("wheel")  # built once


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built as pip builds it, from a copy without .git, with the build backend that is installed here (no download)."""
    copy = tmp_path_factory.mktemp("unpacked")
    for name in SOURCES:
        place = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(place, copy / name, ignore=ignore) if place.is_dir() else shutil.copy(place, copy)
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(copy / "dist"), str(copy)]
    environment = {**os.environ, "GIT_DIR": os.devnull}
    built = subprocess.run([sys.executable, "-m", "pip", *words], env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next((copy / "dist").glob("*.whl")))


def test_the_wheel_holds_every_module_template_migration_and_schema(wheel):
    wanted = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "lbaas_scheduler").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - set(wheel.namelist()) == set()
    for part in ("lbaas_scheduler/db/migrations/env.py", "lbaas_scheduler/db/migrations/versions/", ".cfg.j2"):
        assert any(part in name for name in wheel.namelist()), part


def test_every_kind_of_data_file_is_named_in_setup_cfg():
    """A file of a kind that package_data does not name is left out of the wheel without a word."""
    kinds = {path.suffix for path in (ROOT / "lbaas_scheduler").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert kinds - {".py"} <= NOT_CODE


def test_the_wheel_says_what_it_needs_and_under_which_licence(wheel):
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    for extra in ("postgresql", "mysql", "etcd", "keystone", "neutron", "envoy", "cli", "test", "docs"):
        assert f"Provides-Extra: {extra}" in metadata


def test_what_the_code_imports_is_required():
    """Nothing is used that only happens to be installed with something else."""
    for path, tree in trees().items():
        extra = next((extra for place, extra in EXTRAS.items() if path.startswith(place)), None)
        named = _section("install_requires") + (_section(extra) if extra else "")
        for name in _third_parties(path, tree):
            spelt = {name.lower().replace("_", sign) for sign in "_.-"}
            assert any(one in named for one in spelt), f"{path}: {name} is not required"


EXTRAS = {"lbaas_scheduler/cli/": "cli", "lbaas_scheduler/allocator/drivers/etcd": "etcd"}
"""What has its libraries from an extra, and is loaded by name only."""


def _section(name: str) -> str:
    return (ROOT / "setup.cfg").read_text().partition(f"\n{name} =\n")[2].partition(" =\n")[0].lower()


def _third_parties(path: str, tree: ast.AST) -> set[str]:
    """Packages that a file imports; the conformance suite's pytest is its user's."""
    names = {name.split(".")[0] for node in ast.walk(tree) for name in imported(node)}
    given = {"pytest"} if "/conformance/" in path else set()
    return names - set(sys.stdlib_module_names) - given - {"lbaas_scheduler", "None"}


def test_the_pages_for_people_name_no_place_of_a_developers_machine():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "doc" / "source").rglob("*.rst")]
    for page in pages:
        text = page.read_text()
        assert not [word for word in FOREIGN if word in text], page


FOREIGN = [f"/{folder}/" for folder in ("root", "work", "Users")]
"""In pieces, so that this file does not name them itself."""


def test_no_source_file_names_a_place_of_a_developers_machine():
    for folder in ("lbaas_scheduler", "tests", "tools", "etc", "releasenotes"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path != Path(__file__):
                text = path.read_text(errors="replace")
                assert not [word for word in FOREIGN if word in text], path
