"""Service plugins, and what runs in a server beside them."""

# Before oslo.messaging is imported anywhere below: it keeps oslo.service off eventlet.
import lbaas_scheduler.rpc  # noqa: F401
