"""Private instances of the real services, for the tests that need them.

Each run of pytest starts at most one RabbitMQ, one MariaDB, one PostgreSQL and one etcd, on free loopback ports, with their
files in a temporary folder, and only if a selected test asks for them; under pytest-xdist the workers share them. Whatever ends
the run, even ``kill -9``, ends them too (see :mod:`tests.rig.keeper`). The fixtures are in :mod:`tests.rig.fixtures`.
"""
