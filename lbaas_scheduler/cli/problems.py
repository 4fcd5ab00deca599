"""What the command line cannot do, in one line that says what to do instead."""

from __future__ import annotations


class Problem(Exception):
    """The message is for the person at the terminal: one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Refused(Problem):
    """The server answered with an error.

    :param status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
