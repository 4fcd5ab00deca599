"""The roles that all rules are made of."""

from __future__ import annotations

from collections.abc import Sequence

from oslo_policy import policy

ADMIN_RULE = "context_is_admin"

ADMIN = f"rule:{ADMIN_RULE}"
MEMBER = "rule:member_or_admin"
READER = "rule:reader_or_member"

RULES = (
    policy.RuleDefault(ADMIN_RULE, "role:admin", "Sees and changes what belongs to any tenant, and the fleet."),
    policy.RuleDefault("member_or_admin", f"role:member or {ADMIN}", "Changes what belongs to the own tenant."),
    policy.RuleDefault("reader_or_member", f"role:reader or {MEMBER}", "Sees what belongs to the own tenant."),
)


def rule(name: str, who: str, description: str, *places: str) -> policy.DocumentedRuleDefault:
    """A rule. ``places``: where it is asked, like ``GET /v2.0/lb/vips``."""
    parts = (place.partition(" ") for place in places)
    operations: list[policy.Operation] = [{"method": method, "path": path} for method, _, path in parts]
    return policy.DocumentedRuleDefault(name, who, description, operations)


def crud(name: str, collection: str, path: str, read: str, write: str, one: str = "") -> Sequence[policy.DocumentedRuleDefault]:
    """The four rules of a noun. ``one``: the path of an object, where it is not ``<path>/{id}``."""
    words, one = "VIP" if name == "vip" else name.replace("_", " "), one or f"{path}/{{id}}"
    return (
        rule(f"get_{name}", read, f"See {collection.replace('_', ' ')}.", f"GET {path}", f"GET {one}"),
        rule(f"create_{name}", write, f"Create a {words}.", f"POST {path}"),
        rule(f"update_{name}", write, f"Change a {words}.", f"PUT {one}"),
        rule(f"delete_{name}", write, f"Delete a {words}.", f"DELETE {one}"),
    )
