"""Envoy on the agent's own host: one process per device, configured through files that it watches, never reloaded.

Where to look: :mod:`.handler` (what the scheduler is told), :mod:`.driver` (the agent's side), :mod:`.resources` (a VIP as Envoy
sees it), :mod:`.node` (one device), :mod:`.delivery` (how a change reaches a running Envoy and is confirmed).
"""
