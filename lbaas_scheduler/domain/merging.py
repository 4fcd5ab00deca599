"""How a change of an attribute that is an object is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(before: Mapping[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """``before`` after a change: keys that it does not name stay, null removes one, and null in place of the object all.

    As RFC 7396 has it, but one level deep: what stands below a key is replaced as a whole.
    """
    if changes is None:
        return {}
    return {key: value for key, value in {**before, **changes}.items() if value is not None}
