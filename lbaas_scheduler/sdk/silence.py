"""For how long a data plane that runs has answered nothing."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager

OWN_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""With these the kernel lets nobody ask: they say nothing of whoever was to answer, and must not be taken for silence."""


class Silence:
    """Begins with the first question that got no answer, and ends with the next one that did.

    :param bound_seconds: how long it may last; 0 = for ever.
    :param unanswered: the exceptions that say that nobody answered.
    """

    def __init__(self, bound_seconds: float, *unanswered: type[Exception]) -> None:
        self._bound_seconds = bound_seconds
        self._unanswered = unanswered
        self._since: float | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around a question, or several. What it raises is passed on."""
        began = time.monotonic()
        try:
            yield
        except self._unanswered:
            if self._since is None:
                self._since = began
            raise
        else:
            self._since = None

    def ended(self) -> None:
        """Whoever was silent is gone."""
        self._since = None

    @property
    def too_long(self) -> bool:
        """Whether it has lasted for its bound."""
        return bool(self._bound_seconds) and self._since is not None and time.monotonic() - self._since >= self._bound_seconds
