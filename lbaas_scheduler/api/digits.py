"""Numbers in a range as a regular expression: LBaaS v1 clients send numbers as strings, and JSON Schema bounds only numbers."""

from __future__ import annotations


def pattern_of_range(low: int, high: int) -> str:
    """A pattern that matches the decimal text of exactly the integers from ``low`` to ``high``, without leading zeros."""
    parts: list[str] = []
    if low < 0:
        parts += [f"-{part}" for part in _of_positive(max(1, -high), -low)]
    if high >= 0:
        parts += _of_positive(max(0, low), high)
    return f"^(?:{'|'.join(parts)})$"


def _of_positive(low: int, high: int) -> list[str]:
    """One pattern per number of digits, each split where the digits' ranges differ."""
    parts: list[str] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 0 if length == 1 else 10 ** (length - 1))
        parts += _of_same_length(str(first), str(min(high, 10**length - 1)))
    return parts


def _of_same_length(low: str, high: str) -> list[str]:
    if not low:
        return [""]
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return [_digit(low[0], high[0]) + _any(rest)]
    if low[0] == high[0]:
        return [low[0] + part for part in _of_same_length(low[1:], high[1:])]
    parts = [low[0] + part for part in _of_same_length(low[1:], "9" * rest)]
    if int(low[0]) + 1 <= int(high[0]) - 1:
        parts.append(_digit(str(int(low[0]) + 1), str(int(high[0]) - 1)) + _any(rest))
    return parts + [high[0] + part for part in _of_same_length("0" * rest, high[1:])]


def _digit(low: str, high: str) -> str:
    return low if low == high else f"[{low}-{high}]"


def _any(count: int) -> str:
    return "" if count == 0 else "[0-9]" if count == 1 else f"[0-9]{{{count}}}"
