"""What the words that a tenant writes may be: one limit each, for the API that accepts them and the drivers that render them.

Patterns are of the whole word.
"""

from __future__ import annotations

MAX_COOKIE_NAME = 255
COOKIE_NAME = r"[0-9A-Za-z!%&*+.^_|~-]+"
"""RFC 6265 says: a token of RFC 2616. Without its quotation marks, "#" and "$", which configuration languages give a meaning."""

HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH")
"""The safe or at least commonly monitored methods of RFC 9110; CONNECT makes no sense for a check."""

MAX_URL_PATH = 255
URL_PATH = r"/(?:[0-9A-Za-z._~!$&()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*"
"""Path and query of RFC 3986, without the apostrophe."""

MAX_EXPECTED_CODES = 64
EXPECTED_CODES = r"[1-5][0-9]{2}(?: *, *[1-5][0-9]{2})*|[1-5][0-9]{2}-[1-5][0-9]{2}"

MAX_SECONDS = 86400
"""Of a monitor's delay and timeout: a day. HAProxy refuses more than 24.8 of them (2³¹ − 1 ms), and nobody waits for so long."""
MAX_RETRIES = 10
MAX_WEIGHT = 256
MAX_CONNECTION_LIMIT = 2**31 - 1
