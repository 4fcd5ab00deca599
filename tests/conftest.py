"""Fixtures for all tests; those of the services are in tests/rig/fixtures.py."""

# Before any test module imports oslo.messaging: settles that oslo.service runs on threads, see there.
import lbaas_scheduler.rpc  # noqa: F401

pytest_plugins = ["tests.rig.fixtures"]
