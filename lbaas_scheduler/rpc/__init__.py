"""The bus between servers, agents and clients: transport, document codec and the client side of every interface."""

from oslo_service.backend import BackendType, register_backend_default_hook

# oslo.messaging imports oslo.service, which loads its eventlet backend unless told otherwise before.
register_backend_default_hook(lambda: BackendType.THREADING)
