"""The examples of doc/source/allocator.rst and of examples/ do what they say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.allocator_side import EXAMPLE
from tests.house.sources import ROOT
from tests.rig.etcd import Etcd

PAGE = ROOT / "doc" / "source" / "allocator.rst"
ETCD = "etcd\n----\n"


def run(text: str, name: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, str(PAGE), 0)
    assert test.examples
    said: list[str] = []
    result = doctest.DocTestRunner().run(test, out=said.append)
    assert not result.failed, "".join(said)


def without_etcd() -> str:
    before, _, after = PAGE.read_text().partition(ETCD)
    assert after
    return before


def test_every_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    text = without_etcd()
    assert "sqlite:////tmp/host.sqlite" in text
    run(text.replace("/tmp/host.sqlite", str(tmp_path / "host.sqlite")), "allocator.rst")  # noqa: S108


def test_the_example_with_etcd(etcd_server: Etcd) -> None:
    text = PAGE.read_text().partition(ETCD)[2].partition("Ways in\n")[0]
    here = text.replace("http://127.0.0.1:2379", etcd_server.url).replace("/site-1", etcd_server.new_namespace())
    imports = [line for line in without_etcd().splitlines() if re.match(r">>> from .*(requests|standalone)", line)]
    run("\n".join([*imports, "", here]), "etcd")


def test_a_host_keeps_its_vlans_with_nothing_but_the_allocator(tmp_path: Path) -> None:
    def program(*words: str) -> str:
        command = [
            sys.executable,
            "-W",
            "ignore",
            str(ROOT / "examples" / "host_vlans.py"),
            str(tmp_path / "vlans.sqlite"),
            *words,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    assert program("take", "blue") == "2\n"
    assert program("take", "red") == "3\n"
    assert program("give", "blue") == "1\n"
    assert program("list") == "3 red\n"


def test_the_allocator_drags_in_nothing_of_the_load_balancers() -> None:
    code = (
        "import sys",
        "from lbaas_scheduler.allocator.drivers.memory import MemoryDriver",
        "from lbaas_scheduler.allocator.standalone import open_allocator",
        "open_allocator(MemoryDriver())",
        "ours = {name.split('.')[1] for name in sys.modules if name.startswith('lbaas_scheduler.')}",
        "print(*sorted(ours), *sorted({'falcon', 'oslo_messaging', 'cheroot'} & set(sys.modules)))",
    )
    run_ = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert set(run_.stdout.split()) <= {"allocator", "conf", "db", "domain", "errors"}
