"""What is on disk of a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.conformance.documents import member, vip
from lbaas_scheduler.vendors.envoy.folder import Folder, Record, digest, folder_of
from lbaas_scheduler.vendors.envoy.resources import Terms, render

RECORD = Record(Version(2, 5), render(vip(port=80, members=(member(),)), Terms(5, 60, 100)).resources, {"127.0.0.1 9": "m"}, True)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "state" / "device")
    folder.create({})
    return folder


def test_a_record_comes_back_as_it_was_written(folder: Folder) -> None:
    folder.write_record("v1", RECORD)
    assert folder.records() == {"v1": RECORD}
    folder.drop_record("v1")
    assert folder.records() == {}


def test_a_file_that_is_no_record_hides_no_other(folder: Folder) -> None:
    folder.write_record("good", RECORD)
    for name, text in (("torn", '{"owner'), ("foreign", '{"owner": "somebody"}'), ("list", "[]")):
        (folder.path / "vips" / f"{name}.json").write_text(text)
    assert set(folder.records()) == {"good"}


def test_the_folder_is_closed_to_others(folder: Folder) -> None:
    folder.write_record("v1", RECORD)
    assert {path.stat().st_mode & 0o077 for path in (folder.path, *folder.path.rglob("*"))} == {0}


def test_watched_resources_come_back_by_name_and_absent_ones_are_none(folder: Folder) -> None:
    assert folder.read_watched("cds") == {}
    folder.write_watched("cds", [{"name": "b", "x": 1}, {"name": "a"}])
    assert folder.read_watched("cds") == {"a": {"name": "a"}, "b": {"name": "b", "x": 1}}


def test_the_version_depends_on_the_content_only() -> None:
    assert digest([{"a": 1, "b": 2}]) == digest([{"b": 2, "a": 1}])
    assert digest([{"a": 1}]) != digest([{"a": 2}])
    assert digest([]) != digest([{}])


def test_destroying_leaves_nothing_and_can_be_repeated(folder: Folder) -> None:
    folder.write_record("v1", RECORD)
    (folder.path / ".torn.tmp").touch()
    for _ in range(2):
        folder.destroy()
        assert not folder.path.exists()
    assert folder.records() == {}
    assert not folder.ours()


@pytest.mark.parametrize("device_id", ["", ".", "..", "../other", "a/b", "a\0"])
def test_an_id_cannot_lead_elsewhere(tmp_path: Path, device_id: str) -> None:
    with pytest.raises(DriverError):
        folder_of(tmp_path, device_id)
