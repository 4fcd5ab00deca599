"""Every case of the acceptance list in doc/source/allocator.rst is in the name of a test."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.house.sources import ROOT

PAGE = ROOT / "doc" / "source" / "allocator.rst"
FOLDERS = ("tests/contract/allocator", "tests/unit/allocator", "tests/functional/allocator")

NUMBERED = re.compile(r"def test_cases?_((?:\d+|to|and)(?:_(?:\d+|to|and))*)_")
REPORTED = re.compile(r"def test_((?:install_|sand_)?\d+(?:_\d+)*)_")

REPORTS = (
    *(8, 38, 39, 46, 208, 214, 215, 216, 312, 366, 375, 379, 385, 389, 394, 413, 440, 456, 508, 540, 547, 597, 710, 726, 797),
    *(871, 901, 958, 997, 1133, 1140, 1165),
)
"""Public reports of what went wrong elsewhere; besides, 182 and 183 of an installer and 51 of another project."""


def sources() -> Iterator[str]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("test_*.py")):
            yield path.read_text()


def numbers(words: str) -> set[int]:
    """``63_to_66_93`` → 63, 64, 65, 66, 93."""
    found: list[int] = []
    pieces = iter(words.split("_"))
    for piece in pieces:
        if piece == "to":
            found += range(found[-1], int(next(pieces)) + 1)
        elif piece != "and":
            found.append(int(piece))
    return set(found)


def listed() -> list[int]:
    rows = re.findall(r"^   \* - (\d+(?:, \d+)*)$", PAGE.read_text(), re.MULTILINE)
    return [int(number) for row in rows for number in row.split(", ")]


def test_the_list_has_each_case_once() -> None:
    assert sorted(listed()) == list(range(1, 99))


def test_each_case_is_in_the_name_of_a_test() -> None:
    tested = {number for text in sources() for words in NUMBERED.findall(text) for number in numbers(words)}
    assert sorted(set(listed()) - tested) == []


def test_each_public_report_is_in_the_name_of_a_test() -> None:
    found = [words for text in sources() for words in REPORTED.findall(text)]
    tested = {int(number) for words in found for number in re.findall(r"\d+", words)}
    assert sorted({*REPORTS, 182, 183, 51} - tested) == []
