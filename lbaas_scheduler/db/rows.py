"""Types of statements and of their rows, whatever columns they have.

SQLAlchemy 2.1 names the columns' types one by one, 2.0 as one tuple: as texts, these break neither where they are imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Any

    import sqlalchemy as sa

AnyRow: TypeAlias = "sa.Row[*tuple[Any, ...]]"
AnySelect: TypeAlias = "sa.Select[*tuple[Any, ...]]"
