"""Ranges of numbers as people write them: ``5-100, 101-200``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.kinds.configs import invalid
from lbaas_scheduler.errors import InvalidRequest

_RANGE = re.compile(r"(\d{1,10})-(\d{1,10})", re.ASCII)


def parse(kind: str, word: str, text: Any, lowest: int, highest: int) -> Spans:
    """``FIRST-LAST, FIRST-LAST, …``.

    :param word: name of the configuration's word, for the text of the error.
    :raises InvalidConfig: not of this form, reversed, outside of ``lowest`` to ``highest``, or two ranges overlap.
    """
    if not isinstance(text, str):
        raise invalid(kind, f"{word} is {text!r:.80}; give text such as '{lowest}-{highest}'")
    pairs = [_pair(kind, word, piece.strip(), lowest, highest) for piece in text.split(",")]
    for one, other in pairwise(sorted(pairs)):
        if other[0] <= one[1]:
            raise invalid(kind, f"{word}: {_text(one)} and {_text(other)} overlap")
    return Spans.of(pairs)


def _pair(kind: str, word: str, piece: str, lowest: int, highest: int) -> tuple[int, int]:
    found = _RANGE.fullmatch(piece)
    if found is None:
        raise invalid(kind, f"{word}: {piece!r:.80} is no range; write FIRST-LAST, several with commas between them")
    first, last = int(found[1]), int(found[2])
    if first > last:
        raise invalid(kind, f"{word}: {piece} is reversed; write {last}-{first}")
    if first < lowest or last > highest:
        raise invalid(kind, f"{word}: {piece} leaves {lowest}-{highest}")
    return first, last


def written(spans: Spans) -> str:
    """The reverse of :func:`parse`, in one way for equal ranges."""
    return ", ".join(map(_text, spans.items))


def number(kind: str, value: Any) -> int:
    """A value that a caller asks for.

    :raises InvalidRequest: no whole number, "any" or "2001-2005" among them: None, and nothing else, means any.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**128:
        raise InvalidRequest(
            f"Invalid type for {kind} value: {value!r:.80}; give a whole number, or None for any", value=repr(value)[:80]
        )
    return value


def _text(pair: tuple[int, int]) -> str:
    return f"{pair[0]}-{pair[1]}"
