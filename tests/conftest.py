"""Fixtures for all tests; those of the services are in tests/rig/fixtures.py."""

pytest_plugins = ["tests.rig.fixtures"]
