"""Measurements. No test run depends on their times; take ratios within one run, never absolute figures over runs."""

# As with every command: threads only, and no word about eventlet, which libraries import and nobody uses.
import lbaas_scheduler.cmd  # noqa: F401
