"""Who may do what, for oslo.policy. ``etc/policy.yaml.sample`` is made of it."""

from __future__ import annotations

from oslo_policy import policy

from lbaas_scheduler.api.policies import base, fleet, load_balancers, networks, quotas, resources


def list_rules() -> list[policy.RuleDefault]:
    return [*base.RULES, *load_balancers.RULES, *networks.RULES, *fleet.RULES, *quotas.RULES, *resources.RULES]
