"""How processes reach each other: oslo.messaging's transport, and the factories of servers and clients on it.

Two rules of use, both found the hard way:

* read ``error.message`` of an error that came over the bus: ``str(error)`` holds the other side's traceback;
* hand down ``cfg.CONF`` itself: oslo.messaging registers its tracing options on the global object only, and a private
  ``ConfigOpts`` fails with ``NoSuchOptError`` at its first cast.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_messaging.opts import list_opts as messaging_opts
from oslo_messaging.rpc.client import RemoteError, RPCClient
from oslo_messaging.rpc.dispatcher import RPCDispatcher, UnsupportedVersion
from oslo_messaging.rpc.server import RPCServer

from lbaas_scheduler import errors
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import Dispatcher, Foreign
from lbaas_scheduler.rpc.mismatches import mismatch_of, name_mismatches
from lbaas_scheduler.rpc.serving import THREADS, BoundedServer

LOG = logging.getLogger(__name__)

CAST_RETRIES = 1
"""How often a cast tries again when the broker is away. With the driver's waits about three seconds: a request of a tenant must
not hang on it, and the reconciler casts again anyway."""

RECONNECT_SECONDS = 5
"""Longest wait between two attempts to reach RabbitMQ. The library's 30 would leave agents deaf for long after an outage."""

_RABBIT = "oslo_messaging_rabbit"
_LIBRARIES_BELOW = ("amqp", "kombu")
_URL = "rabbit://user:password@host:5672/virtual_host, several hosts separated by commas"
_TRAVELLING = ("user_id", "project_id", "roles", "is_admin", "request_id")


def get_transport(conf: cfg.ConfigOpts) -> oslo_messaging.Transport:
    """The transport that ``transport_url`` names. Errors of ours keep their class across it.

    Queues are quorum queues unless the operator chose otherwise: a cast then survives the loss of a broker node.

    :raises ConfigurationError: ``transport_url`` is wrong. Never repeats it: it holds a password.
    """
    oslo_messaging.set_transport_defaults(control_exchange=topics.EXCHANGE)
    name_mismatches()
    _set_library_defaults(conf)
    try:
        return oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=[errors.__name__])
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure, ValueError):
        # From None: the cause shows the URL.
        raise errors.ConfigurationError(reason=f"transport_url is not valid; expected {_URL}") from None


def get_server(
    transport: oslo_messaging.Transport, topic: str, host: str, endpoints: Sequence[object], foreign: Foreign | None = None
) -> RPCServer:
    """A server, not started yet, that answers on ``topic`` and alone on ``topic.host``. Endpoints run in its threads.

    :param foreign: see :class:`~lbaas_scheduler.rpc.dispatching.Dispatcher`.
    """
    target = oslo_messaging.Target(topic=topic, server=host)
    return BoundedServer(transport, target, Dispatcher(endpoints, ContextSerializer(), foreign))


def listen(make: Callable[[], RPCServer]) -> RPCServer:
    """Start a server of :func:`get_server`. Blocks for as long as the broker is away, or refuses what is to be declared.

    :param make: makes the server: one that failed cannot be started again.
    """
    said = ""
    while True:
        try:
            server = make()
            server.start()
            return server
        except Exception as error:
            # The library gives up on some answers of the broker. A process without its queues would be deaf for ever.
            reason = mismatch_of(error) or str(error)
            if reason != said:
                LOG.error("The message bus does not let this process listen, which is tried again: %s", reason)
            said = reason
        time.sleep(RECONNECT_SECONDS)


def get_client(transport: oslo_messaging.Transport, topic: str, namespace: str | None = None) -> RPCClient:
    """A client for ``topic``. Sending is given up soon when the broker is away (see :data:`CAST_RETRIES`)."""
    target = oslo_messaging.Target(topic=topic, namespace=namespace, version=topics.ON_THE_WIRE)
    return oslo_messaging.get_rpc_client(transport, target, serializer=ContextSerializer(), retry=CAST_RETRIES)


@contextmanager
def delivering() -> Iterator[None]:
    """Around a cast or a call: whatever says that the broker is away becomes ``oslo_messaging.MessageDeliveryFailure``.

    oslo.messaging itself lets the errors of the libraries below through where it has no connection yet.

    :raises IncompatibleVersion: the other side does not understand this release.
    """
    try:
        yield
    except (UnsupportedVersion, RemoteError) as error:
        # The in-process bus hands on the error itself, a broker what it was called.
        if isinstance(error, RemoteError) and error.exc_type != UnsupportedVersion.__name__:
            raise
        raise errors.IncompatibleVersion(version=topics.VERSION) from error
    except Exception as error:
        below = type(error).__module__.partition(".")[0] in _LIBRARIES_BELOW
        if not below and not (isinstance(error, OSError) and not _came_in_an_answer(error)):
            raise
        raise oslo_messaging.MessageDeliveryFailure(str(error)) from error


def _came_in_an_answer(error: Exception) -> bool:
    """Whether the other side raised it: a TimeoutError there looks like one of our own connection.

    An error out of an answer is raised by the library's driver itself, one of a connection further down, where sockets are used.
    The in-process bus hands on the very error that its dispatcher met.
    """
    modules = [str(frame.f_globals.get("__name__")) for frame, _line in traceback.walk_tb(error.__traceback__)]
    return modules[-1].startswith(oslo_messaging.__name__) or RPCDispatcher.__module__ in modules


def service_context() -> RequestContext:
    """The context of what servers and agents do on their own."""
    return RequestContext(is_admin=True, overwrite=False)


class ContextSerializer(oslo_messaging.NoOpSerializer):  # type: ignore[misc]
    """Carries who asks: project, user, roles, admin or not, request id. Tokens and all else stay behind."""

    def serialize_context(self, context: RequestContext | Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(context, Mapping):
            return {name: context[name] for name in _TRAVELLING if name in context}
        return {name: getattr(context, name) for name in _TRAVELLING}

    def deserialize_context(self, context: Mapping[str, Any]) -> RequestContext:
        known = {name: context[name] for name in _TRAVELLING if name in context}
        return RequestContext(overwrite=False, **known)


def _set_library_defaults(conf: cfg.ConfigOpts) -> None:
    # The driver registers these options itself, but later: a default can only be set on what is registered.
    for group, options in messaging_opts():
        if group in (_RABBIT, None):
            conf.register_opts(options, group=group)
    conf.set_default("executor_thread_pool_size", THREADS)
    conf.set_default("rabbit_quorum_queue", True, group=_RABBIT)
    conf.set_default("rabbit_interval_max", RECONNECT_SECONDS, group=_RABBIT)
