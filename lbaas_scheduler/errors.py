"""The error tree. Everything that this package raises on purpose is an :class:`LBaaSError`.

::

    LBaaSError
    ├── InvalidRequest              the caller's input is wrong; says what would be right
    │   ├── ProtocolMismatch        VIP and pool speak different protocols
    │   ├── DelayOrTimeoutInvalid   a health monitor whose delay is shorter than its timeout
    │   ├── InvalidIpForSubnet      an address outside its subnet
    │   ├── ServiceProviderNotFound unknown or disabled service type
    │   ├── UnknownDeviceType       no handler is loaded for a device type
    │   ├── InvalidConfig           a definition of a pool that cannot be
    │   ├── OutOfRange              a value that its pool does not have
    │   └── TransactionTooLarge     more at once than the store can do at once
    ├── NotAuthorized               the caller may see it, but not do this to it
    ├── NotFound                    absent, or not the caller's
    │   ├── VipNotFound, PoolNotFound, MemberNotFound, HealthMonitorNotFound
    │   ├── PoolMonitorAssociationNotFound
    │   ├── DeviceNotFound, AgentNotFound, ServiceTypeNotFound, PlacementRuleNotFound
    │   ├── NetworkNotFound, SubnetNotFound, PortNotFound
    │   └── NotDefined, NotAllocated    no such pool; no such allocation
    ├── Conflict                    correct in itself, but not in the present state
    │   ├── VipExists, MemberExists, StateInvalid
    │   ├── LeadsBack, LeadsToHost  a data plane would call itself, or its own host
    │   ├── PoolInUse, HealthMonitorInUse, PoolMonitorAssociationExists
    │   ├── IpAddressInUse, SubnetInUse, ServicePortInUse
    │   ├── OverQuota               the tenant has as many as it may have
    │   ├── DeviceInUse, ServiceTypeInUse
    │   ├── AlreadyDefined, ValueInUse, Overlap
    │   ├── KeptForRestore          what is unknown since a restore stays
    │   ├── PoolBusy, PoolDraining, DependencyInUse, OwnerLives
    │   └── StaleGeneration         somebody else changed the row first
    ├── Exhausted                   nothing is left to give
    │   ├── IpAddressGenerationFailure
    │   ├── PoolExhausted, QuotaExceeded
    │   └── NoValidDevice           carries the trail: why each device was refused
    ├── DriverError                 a vendor's code failed; carries the text for users
    ├── Unavailable                 something that we depend on is away for now; try again
    │   ├── StoreUnavailable        the allocator's store
    │   └── Contention              others were faster, every time
    ├── IncompatibleVersion         the other side of the bus is of another major version
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


class InvalidConfig(InvalidRequest):
    template = "Invalid {kind} resource config: {reason}"


class OutOfRange(InvalidRequest):
    template = "{value} is not in {kind} pool '{pool}'."


class TransactionTooLarge(InvalidRequest):
    template = (
        "The request takes {operations} operations on the store, and {driver} does {limit} at once; "
        "split it into smaller requests. Nothing was changed."
    )


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


class PlacementRuleNotFound(NotFound):
    template = "Placement rule {id} could not be found."


class NetworkNotFound(NotFound):
    template = "Network {id} could not be found."


class SubnetNotFound(NotFound):
    template = "Subnet {id} could not be found."


class PortNotFound(NotFound):
    template = "Port {id} could not be found."


class NotDefined(NotFound):
    template = 'No resource found for description: "{kind}" and id: "{id}"'


class NotAllocated(NotFound):
    template = "{id} is not allocated."


class Conflict(LBaaSError):
    template = "The request conflicts with the present state: {reason}"


class VipExists(Conflict):
    template = "Pool {pool_id} already has a VIP."


class MemberExists(Conflict):
    template = "Member {address}:{port} already exists in pool {pool_id}."


class LeadsBack(Conflict):
    template = "A member of the pool leads back to VIP {vip_id}: the VIP would send its connections to itself."


class LeadsToHost(Conflict):
    template = "A member of the pool has a loopback address: VIP {vip_id} would send its connections to its own device."


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


class ServicePortInUse(Conflict):
    template = "Port {port_id} belongs to VIP {vip_id} and goes with it only."


class OverQuota(Conflict):
    template = "Quota exceeded for resources: ['{resource}']; the tenant has {used} and may have {limit}."


class DeviceInUse(Conflict):
    template = "Device {id} still carries {count} placement(s); drain or evacuate it first."


class ServiceTypeInUse(Conflict):
    template = "Service type {id} is still in use by {count} VIP(s)."


class AlreadyDefined(Conflict):
    template = 'Resource with id: "{id}" already exists'


class ValueInUse(Conflict):
    template = "{value} of {kind} pool '{pool}' is in use."


class Overlap(Conflict):
    template = "{what} of {kind} pool '{pool}' overlaps {kind_of_other} pool '{other}' at {at}, both in {domain}."


class PoolBusy(Conflict):
    template = "{kind} pool '{pool}' still has {count} allocation(s); release them, or drain it or force it."


class KeptForRestore(Conflict):
    template = (
        "The database was restored from a backup and does not know {what} of device {device_id}; it is kept until an operator "
        "has decided ('lbaas-scheduler-manage restore list')."
    )


class PoolDraining(Conflict):
    template = "{kind} pool '{pool}' is draining; it hands out nothing more."


class DependencyInUse(Conflict):
    template = "{value} still carries {count} allocation(s) that depend on it; release them first, or force it."


class OwnerLives(Conflict):
    template = "{type} {id} lives and uses what would be released; delete the {type} instead, or force it."


class StaleGeneration(Conflict):
    template = "{resource} {id} was changed by somebody else; read it again and repeat the change."


class Exhausted(LBaaSError):
    template = "Nothing is left: {reason}"


class IpAddressGenerationFailure(Exhausted):
    template = "No free address is left in subnet {subnet_id}."


class NoValidDevice(Exhausted):
    """No device can take the resource. ``kwargs["trail"]`` says why, stage by stage (see :class:`domain.trail.Trail`)."""

    template = "No device can take it: {summary}"


class PoolExhausted(Exhausted):
    template = "no {kind} values available"


class QuotaExceeded(Exhausted):
    template = (
        "Tenant '{tenant_id}' has {used} of the {quota} values that {kind} pool '{pool}' allows it; {wanted} more do not fit."
    )


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


class StoreUnavailable(Unavailable):
    template = "The allocator's store {dependency} is unavailable for now: {reason}"


class Contention(Unavailable):
    template = "{dependency} is contended: {reason}; repeat the request."


class IncompatibleVersion(LBaaSError):
    template = (
        "The other side of the message bus does not understand messages of version {version}, which this release sends: "
        "upgrade whichever of them is older."
    )


class ConfigurationError(LBaaSError):
    template = "The configuration is wrong: {reason}"
