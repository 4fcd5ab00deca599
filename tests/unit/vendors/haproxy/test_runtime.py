"""What HAProxy answers, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbaas_scheduler.vendors.haproxy import runtime, stats
from lbaas_scheduler.vendors.haproxy.files import DeviceFiles
from lbaas_scheduler.vendors.haproxy.process import alerts
from lbaas_scheduler.vendors.haproxy.runtime import Processes, RuntimeUnavailable

SHOW_PROC = """#<PID>          <type>          <reloads>       <uptime>        <version>
1162            master          5 [failed: 2]   0d00h02m07s     2.6.12
# workers
1271            worker          1               0d00h00m00s     2.6.12
# old workers
1233            worker          3               0d00h00m43s     2.6.12
1200            worker          4               0d00h00m53s     2.6.12
# programs

"""
HEADER = "# pxname,svname,scur,stot,bin,bout,status,chkfail,check_status,last_chk,\n"


def rows(*lines: str) -> list[dict[str, str]]:
    return runtime._table(HEADER + "".join(f"{line},\n" for line in lines) + "\n")


def test_processes_are_told_apart() -> None:
    assert runtime._processes(SHOW_PROC) == Processes(reloads=5, failed=2, worker=1271, old=(1233, 1200))


@pytest.mark.parametrize("text", ["", "\n", "Unknown command\n", "#<PID> <type>\n"])
def test_an_answer_without_a_master_is_no_answer(text: str) -> None:
    with pytest.raises(RuntimeUnavailable):
        runtime._processes(text)


def test_an_absent_folder_is_unavailable_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnavailable):
        runtime.Runtime(tmp_path / "gone", 1).ask("show proc")
    assert not (tmp_path / "gone").exists()


def test_the_nameless_last_column_is_dropped() -> None:
    assert set(rows("v,FRONTEND,1,2,3,4,OPEN,,,")[0]) == set(HEADER[2:].strip().strip(",").split(","))


@pytest.mark.parametrize("text", ["", "\n\n", "Unknown command", "# pxname,svname,"])
def test_an_empty_table_has_no_rows(text: str) -> None:
    assert runtime._table(text) == []


def test_long_commands_are_split_into_lines_that_haproxy_takes() -> None:
    commands = [f"set server backend/{number} weight 1" for number in range(1000)]
    lines = list(runtime._lines(commands, runtime.MAX_COMMANDS_BYTES))
    assert max(map(len, lines)) <= runtime.MAX_COMMANDS_BYTES
    assert [step.removeprefix("@1 ") for line in lines for step in line.split(";")] == commands


@pytest.mark.parametrize(
    ("status", "check", "up"),
    [
        ("UP", "L7OK", True),
        ("UP 1/3", "L4TOUT", True),
        ("UP", "* L7OK", True),
        ("UP", "INI", None),
        ("UP", "", None),
        ("DOWN", "L4CON", False),
        ("DOWN", "INI", False),
        ("DOWN 1/2", "L7OK", False),
        ("DRAIN", "L4OK", True),
        ("MAINT", "L4OK", None),
        ("no check", "", None),
    ],
)
def test_health_is_what_the_check_found(status: str, check: str, up: bool | None) -> None:
    health = stats.members(rows(f"v.p,m,0,0,0,0,{status},7,{check},refused"))["v"]["m"]
    assert health.up is up
    assert health.failed_checks == 7
    assert health.detail.endswith("refused")


KNOWN = {"v"}


def ledger(tmp_path: Path) -> stats.Ledger:
    return stats.Ledger(DeviceFiles(tmp_path))


def frontend(connections: int) -> list[dict[str, str]]:
    return rows(f"v,FRONTEND,1,{connections},{10 * connections},{5_000_000_000 + connections},OPEN,,,")


def test_counters_are_64_bit_integers(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(3)}, KNOWN)
    assert book.total("v") == (30, 5_000_000_003, 3)
    assert book.total("unknown") == (0, 0, 0)


def test_counters_are_the_sum_over_all_workers_there_were(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(3)}, KNOWN)
    book.record({2: frontend(1), 1: frontend(4)}, KNOWN)
    assert book.total("v")[2] == 5
    book.record({2: frontend(2)}, KNOWN)
    assert book.total("v")[2] == 6
    book.record({1: frontend(1), 2: frontend(2)}, KNOWN)
    assert book.total("v")[2] == 7


def test_a_worker_about_to_end_does_not_take_its_counters_with_it(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(9)}, KNOWN)
    book.record({1: [], 2: frontend(1)}, KNOWN)
    assert book.total("v")[2] == 10
    book.record({2: frontend(1)}, KNOWN)
    assert book.total("v")[2] == 10


def test_a_process_id_that_comes_back_counts_anew(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(9)}, KNOWN)
    book.record({1: frontend(2)}, KNOWN)
    assert book.total("v")[2] == 11


def test_counters_outlive_the_agent_and_a_damaged_file_costs_only_them(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(9)}, KNOWN)
    book.save()
    book = ledger(tmp_path)
    book.record({2: frontend(1)}, KNOWN)
    assert book.total("v")[2] == 10
    for damaged in ("{", "5", "[1]", '{"1": 2}', '{"1": {"v": [1, 2]}}', '{"1": {"v": "abc"}}', "\xff"):
        (tmp_path / "counters").write_bytes(damaged.encode("latin-1"))
        assert ledger(tmp_path).total("v") == (0, 0, 0)


def test_vips_that_are_gone_leave_nothing_though_an_old_worker_still_names_them(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record({1: frontend(9)}, KNOWN)
    book.record({1: frontend(9), 2: []}, ())
    book.record({2: []}, ())
    assert not any(book.workers.values())


def test_a_tenant_sees_causes_without_paths_and_numbers() -> None:
    said = (
        "[NOTICE]   (17) : haproxy version is 2.6.12\n"
        "[ALERT]    (17) : config : parsing [/state/d/vip-1.cfg:7]: unmatched quote at position 3:\n"
        '  uri /"\n'
        "[ALERT]    (17) : config : [/state/d/vip-1.cfg:9] : 'server b/m' : invalid weight.\n"
        "[ALERT]    (17) : config : Error(s) found in configuration file : /state/d/vip-1.cfg\n"
        "[ALERT]    (17) : config : Fatal errors found in configuration.\n"
    )
    assert alerts(said) == "unmatched quote at position 3; 'server b/m' : invalid weight"
    assert alerts("HAProxy refused to reload.") == "HAProxy refused to reload."
    assert alerts("[NOTICE] (1) : x") == "no reason was given."
