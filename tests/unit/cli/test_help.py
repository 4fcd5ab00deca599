"""What the program says of itself."""

from __future__ import annotations

import pytest

from lbaas_scheduler.cli.shell import run
from tests.command_line import Cli


@pytest.mark.parametrize("words", [["help", "device", "drain"], ["device", "drain", "--help"], ["device", "drain", "-h"]])
def test_help_about_a_command_may_be_asked_for_in_each_way(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert _said(capsys, words).startswith("usage: lbaas-scheduler device drain [-h]")


@pytest.mark.parametrize("words", [[], ["--help"], ["--endpoint", "http://127.0.0.1:9"]])
def test_without_a_command_all_commands_are_listed(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    said = _said(capsys, words)
    assert said.startswith("usage: lbaas-scheduler [--version]")
    assert "device drain" in said


def _said(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(run(words))
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["help", "nonsense"],
        ["nonsense"],
        ["vip", "create"],
        ["vip", "list", "--nonsense"],
        ["device", "set", "box"],
        ["quota", "set", "anne"],
        ["resource", "release"],
        ["resource", "history", "vlan"],
    ],
)
def test_a_wrong_call_exits_with_2_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("LBAAS_ENDPOINT", "http://127.0.0.1:1")
    code, out, err = Cli(capsys).call(*words)
    assert code == 2
    assert (err or out).startswith("lbaas-scheduler")
