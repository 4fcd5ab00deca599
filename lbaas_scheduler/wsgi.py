"""For gunicorn, uWSGI and their like: ``gunicorn lbaas_scheduler.wsgi:application``."""

from __future__ import annotations

from lbaas_scheduler.cmd import wsgi

application = wsgi.application()
