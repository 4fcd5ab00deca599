"""The scheduling framework: request → candidates → verdicts → ranking. Pure: a snapshot in, an order of preference out.

Claiming is a guarded UPDATE elsewhere (``db/placements.py``), wired to this by ``plugins/device_scheduler/placer.py``.
"""
