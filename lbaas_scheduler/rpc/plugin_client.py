"""What the clients of the servers' plugins have in common."""

from __future__ import annotations

from typing import Any

import oslo_messaging
from oslo_context.context import RequestContext

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.transport import delivering, get_client

Body = dict[str, Any]


class PluginClient:
    """The calls, and the two shapes that answers have.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``.
    :raises oslo_messaging.MessageDeliveryFailure: the broker is away.
    """

    namespace: str

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._client = get_client(transport, topics.PLUGINS, self.namespace)

    def _call(self, context: RequestContext, method: str, **arguments: Any) -> Body:
        with delivering():
            answer: Body = self._client.call(context, method, **arguments)
        return answer

    def _list(self, context: RequestContext, method: str, **arguments: Any) -> list[Body]:
        with delivering():
            answer: list[Body] = self._client.call(context, method, **arguments)
        return answer
