"""The registry's servers."""

from tests.functional.registry.conftest import any_fleet, fleet

__all__ = ["any_fleet", "fleet"]
