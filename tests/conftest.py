"""Fixtures for all tests; those of the services are in tests/rig/fixtures.py."""

import logging

# Before any test module imports oslo.messaging: settles that oslo.service runs on threads, see there.
import lbaas_scheduler.rpc  # noqa: F401

# Threads of a bus that was cut log for a while after their test, when pytest has closed the stream that was theirs.
logging.raiseExceptions = False

pytest_plugins = ["tests.rig.fixtures", "tests.tables"]
