"""Fixtures for all tests; those of the services are in tests/rig/fixtures.py."""

import logging

import hypothesis

# Before any test module imports oslo.messaging: settles that oslo.service runs on threads, see there.
import lbaas_scheduler.rpc  # noqa: F401

# Threads of a bus that was cut log for a while after their test, when pytest has closed the stream that was theirs.
logging.raiseExceptions = False

# How long an example takes says nothing about the code while other workers have the cores.
hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")

pytest_plugins = ["tests.rig.fixtures", "tests.tables"]
