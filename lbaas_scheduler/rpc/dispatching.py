"""How messages find their methods when the two sides are of different releases.

Releases of one major version understand each other in both directions: a reader leaves out arguments and fields that it does
not know, and fills in those that are missing; on the wire every release calls itself MAJOR.0, which the oldest one takes.
A message of another major version is refused, and whoever is told of it can name the sender once, without a traceback each time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import oslo_messaging
from oslo_messaging.rpc.dispatcher import ExpectedException, NoSuchMethod, RPCDispatcher, UnsupportedVersion

C = TypeVar("C", bound=Callable[..., Any])

Foreign = Callable[[str, str, Mapping[str, Any]], None]
"""Told of a message that cannot be taken: its version, its method and its arguments. Must not raise."""


def major(version: str) -> str:
    """Of releases whose major versions are the same, each understands the other."""
    return version.partition(".")[0]


def expecting(*kinds: type[Exception]) -> Callable[[C], C]:
    """Decorates methods of endpoints: errors of these kinds are an answer, and no fault that the bus logs with its traceback.

    As ``oslo_messaging.expected_exceptions``, which hides what arguments a method takes.
    """
    expects = oslo_messaging.expected_exceptions(*kinds)

    def decorate(method: C) -> C:
        return functools.wraps(method)(expects(method))  # type: ignore[return-value]

    return decorate


class Dispatcher(RPCDispatcher):  # type: ignore[misc]
    """Takes whatever a release of the same major version sends.

    :param foreign: told of what is of another major version, or asks for a method that is not there. None: a stranger is told so,
        and nobody else; arguments that a method does not take are then his fault.
    """

    def __init__(self, endpoints: Sequence[object], serializer: Any, foreign: Foreign | None = None) -> None:
        super().__init__(list(endpoints), serializer)
        self._foreign = foreign

    @staticmethod
    def _is_compatible(target: oslo_messaging.Target, version: str) -> bool:
        return major(target.version or version) == major(version)

    def dispatch(self, incoming: Any) -> Any:
        try:
            return super().dispatch(incoming)
        except (UnsupportedVersion, NoSuchMethod):
            message = incoming.message
            if self._foreign is not None:
                self._foreign(str(message.get("version")), str(message.get("method")), message.get("args", {}))
            raise ExpectedException from None

    def _do_dispatch(self, endpoint: object, method: str, ctxt: Any, args: Mapping[str, Any]) -> Any:
        known = args if self._foreign is None else _known(getattr(endpoint, method), args)
        return super()._do_dispatch(endpoint, method, ctxt, known)


def _known(method: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    taken = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return dict(arguments)
    return {name: value for name, value in arguments.items() if name in taken}
