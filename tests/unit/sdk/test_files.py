"""A file is the old one or the new one, never a part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lbaas_scheduler.sdk.files import claim, write_atomically


def test_a_file_is_replaced_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    write_atomically(path, "new: ü")
    assert path.read_bytes() == "new: ü".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_can_be_chosen(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", b"", mode=0o644)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


def test_a_reader_that_has_the_old_file_open_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_atomically(path, "old")
    with path.open() as reader:
        write_atomically(path, "new")
        assert reader.read() == "old"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "inside").touch()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the file system
        write_atomically(path, "new")
    assert list(tmp_path.iterdir()) == [path]


CLAIMING = """
import sys
import subprocess
import sys
from pathlib import Path
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.sdk.files import claim
try:
    claim(Path(sys.argv[1]), "[x] state_path")
except ConfigurationError as error:
    print(error.message)
"""


def test_a_folder_is_one_processes_alone_until_it_lets_go(tmp_path: Path) -> None:
    def said_elsewhere() -> str:
        return subprocess.run([sys.executable, "-c", CLAIMING, folder], check=True, capture_output=True, text=True).stdout

    folder = tmp_path / "state"
    ours = [claim(folder, "[x] state_path"), claim(folder, "[x] state_path")]
    assert f"[x] state_path: another agent uses {folder}; each needs a folder of its own." in said_elsewhere()
    ours.pop()
    assert "another agent" in said_elsewhere()
    ours.pop()
    assert said_elsewhere() == ""
    assert claim(folder, "[x] state_path")
