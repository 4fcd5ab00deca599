"""schemathesis holds the server to its own OpenAPI document: every operation, all checks, stateful links."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.api.house import ADMIN, House
from tests.functional.api.serving import served

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"

# Half of the requests that cover each rule of each schema try the filters of lists; test_lists.py has those, too.
EACH_RULE = ("--phases", "coverage", *(() if SOAK else ("--exclude-method", "GET")))
# The number is that of requests per operation.
AT_RANDOM = ("--phases", "examples,fuzzing,stateful", "--max-examples", "100" if SOAK else "2")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("words", "last"), [(EACH_RULE, "Coverage"), (AT_RANDOM, "Stateful")], ids=["each rule", "at random"])
def test_the_server_is_as_its_document_says(house: House, words: tuple[str, ...], last: str) -> None:
    house.put("/v2.0/quotas/admin", {"quota": {"vip": -1, "pool": -1}}, ADMIN)
    with served(house) as url:
        run = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                *("--config-file", str(HERE / "schemathesis.toml")),
                *("run", f"{url}/openapi.json", "--checks", "all", "--no-color", "--seed", "1", *words),
            ],
            cwd=house.folder,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.functional.api.fuzz_hooks", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2000:]
    assert f"✅  {last}" in run.stdout
