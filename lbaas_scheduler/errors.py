"""The error tree. Everything that this package raises on purpose is an :class:`LBaaSError`.

::

    LBaaSError
    ├── InvalidRequest              the caller's input is wrong; says what would be right
    │   ├── ProtocolMismatch        VIP and pool speak different protocols
    │   ├── DelayOrTimeoutInvalid   a health monitor whose delay is shorter than its timeout
    │   ├── InvalidIpForSubnet      an address outside its subnet
    │   ├── ServiceProviderNotFound unknown or disabled service type
    │   └── UnknownDeviceType       no handler is loaded for a device type
    ├── NotAuthorized               the caller may see it, but not do this to it
    ├── NotFound                    absent, or not the caller's
    │   ├── VipNotFound, PoolNotFound, MemberNotFound, HealthMonitorNotFound
    │   ├── PoolMonitorAssociationNotFound
    │   ├── DeviceNotFound, AgentNotFound, ServiceTypeNotFound
    │   └── NetworkNotFound, SubnetNotFound
    ├── Conflict                    correct in itself, but not in the present state
    │   ├── VipExists, MemberExists, StateInvalid
    │   ├── PoolInUse, HealthMonitorInUse, PoolMonitorAssociationExists
    │   ├── IpAddressInUse, SubnetInUse
    │   ├── DeviceInUse, ServiceTypeInUse
    │   └── StaleGeneration         somebody else changed the row first
    ├── Exhausted                   nothing is left to give
    │   ├── IpAddressGenerationFailure
    │   └── NoValidDevice           carries the trail: why each device was refused
    ├── DriverError                 a vendor's code failed; carries the text for users
    ├── Unavailable                 something that we depend on is away for now; try again
    └── ConfigurationError          the operator's configuration is wrong

Names that LBaaS v1 clients know keep their names (``VipExists``, ``PoolInUse``, ...).

An error carries *facts* as keyword arguments and never positional extras, so that oslo.messaging can rebuild it on the
other side of the bus from ``kwargs``. Read :attr:`LBaaSError.message` and not ``str(error)``: the text of a rebuilt error
holds the server's traceback.
"""

from __future__ import annotations

from typing import Any


class LBaaSError(Exception):
    """Base of all errors.

    :param message: sentence for a person; the class's ``template``, filled with ``details``, when absent.
    :param details: facts, JSON-serialisable, kept in :attr:`kwargs`.

    oslo.messaging rebuilds it as ``Class(*args, **kwargs)``: the message travels in ``args``, hence never in ``kwargs``.
    """

    template = "An unknown error occurred."

    def __init__(self, message: str | None = None, **details: Any) -> None:
        self.message = message if message is not None else self.template.format_map(_Missing(details))
        self.kwargs: dict[str, Any] = details
        super().__init__(self.message)

    @property
    def details(self) -> dict[str, Any]:
        """The facts that the error was raised with, without its message."""
        return dict(self.kwargs)


class _Missing(dict):  # type: ignore[type-arg]
    """Shows ``?`` for a fact that was not given: a poor error text must not hide the error itself."""

    def __missing__(self, key: str) -> str:
        return "?"


class InvalidRequest(LBaaSError):
    template = "The request is invalid: {reason}"


class ProtocolMismatch(InvalidRequest):
    template = "Protocol {vip_proto} of the VIP does not match protocol {pool_proto} of its pool."


class DelayOrTimeoutInvalid(InvalidRequest):
    template = "delay ({delay} s) must be greater than or equal to timeout ({timeout} s)."


class InvalidIpForSubnet(InvalidRequest):
    template = "{address} is not a usable address of subnet {subnet_id} ({cidr})."


class ServiceProviderNotFound(InvalidRequest):
    template = "Service type '{service_type}' is unknown or disabled."


class UnknownDeviceType(InvalidRequest):
    template = "Unknown device type '{device_type}' for service {service}; loaded: {known}."


class NotAuthorized(LBaaSError):
    template = "Not authorized: {reason}"


class NotFound(LBaaSError):
    template = "{resource} {id} could not be found."


class VipNotFound(NotFound):
    template = "Vip {id} could not be found."


class PoolNotFound(NotFound):
    template = "Pool {id} could not be found."


class MemberNotFound(NotFound):
    template = "Member {id} could not be found."


class HealthMonitorNotFound(NotFound):
    template = "Health monitor {id} could not be found."


class PoolMonitorAssociationNotFound(NotFound):
    template = "Health monitor {monitor_id} is not associated with pool {pool_id}."


class DeviceNotFound(NotFound):
    template = "Device {id} could not be found."


class AgentNotFound(NotFound):
    template = "Agent {id} could not be found."


class ServiceTypeNotFound(NotFound):
    template = "Service type {id} could not be found."


class NetworkNotFound(NotFound):
    template = "Network {id} could not be found."


class SubnetNotFound(NotFound):
    template = "Subnet {id} could not be found."


class Conflict(LBaaSError):
    template = "The request conflicts with the present state: {reason}"


class VipExists(Conflict):
    template = "Pool {pool_id} already has a VIP."


class MemberExists(Conflict):
    template = "Member {address}:{port} already exists in pool {pool_id}."


class StateInvalid(Conflict):
    template = "{resource} {id} cannot be changed while it is {state}."


class PoolInUse(Conflict):
    template = "Pool {pool_id} is in use by VIP {vip_id}."


class HealthMonitorInUse(Conflict):
    template = "Health monitor {monitor_id} is still associated with {count} pool(s)."


class PoolMonitorAssociationExists(Conflict):
    template = "Health monitor {monitor_id} is already associated with pool {pool_id}."


class IpAddressInUse(Conflict):
    template = "Address {address} of subnet {subnet_id} is in use."


class SubnetInUse(Conflict):
    template = "Subnet {subnet_id} is still in use by {users}."


class DeviceInUse(Conflict):
    template = "Device {id} still carries {count} placement(s); drain or evacuate it first."


class ServiceTypeInUse(Conflict):
    template = "Service type {id} is still in use by {count} VIP(s)."


class StaleGeneration(Conflict):
    template = "{resource} {id} was changed by somebody else; read it again and repeat the change."


class Exhausted(LBaaSError):
    template = "Nothing is left: {reason}"


class IpAddressGenerationFailure(Exhausted):
    template = "No free address is left in subnet {subnet_id}."


class NoValidDevice(Exhausted):
    """No device can take the resource. ``kwargs["trail"]`` says why, stage by stage (see :class:`domain.trail.Trail`)."""

    template = "No device can take {resource_id}: {summary}"


class DriverError(LBaaSError):
    """A vendor's code failed.

    ``message`` is what a tenant may read; ``operator_message`` has the details and goes to the log only.
    """

    template = "The device driver failed: {reason}"

    def __init__(self, message: str | None = None, *, operator_message: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.operator_message = operator_message or self.message


class Unavailable(LBaaSError):
    template = "{dependency} is unavailable for now: {reason}"


class ConfigurationError(LBaaSError):
    template = "The configuration is wrong: {reason}"
