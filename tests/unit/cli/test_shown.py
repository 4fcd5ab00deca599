"""What tables show of a document's values."""

from __future__ import annotations

import pytest

from lbaas_scheduler.cli import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "network", "id": "blue"}, "network:blue"),
        ({"start": "10.0.0.2", "end": "10.0.0.9"}, "start=10.0.0.2, end=10.0.0.9"),
        (["a", "b"], "a, b"),
        (None, ""),
        (0, "0"),
    ],
)
def test_a_value_is_shown_as_people_write_it(value: object, text: str) -> None:
    ((cell,),) = shown.rows([{"value": value}], ["value"])
    assert (cell.human_readable() if hasattr(cell, "human_readable") else str(cell)) == text
