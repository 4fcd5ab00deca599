"""The LoadBalancer service as its callers see it, whatever stands behind it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.plugins.base import ServicePluginBase

Document = dict[str, Any]
Body = Mapping[str, Any]
Filters = Mapping[str, Any]
Fields = Sequence[str]


class LoadBalancerPluginBase(ServicePluginBase):
    """LBaaS v1, in the shape of a Neutron service plugin.

    Bodies and answers are plain dicts of attributes. ``context`` says who calls: ``project_id`` is the tenant; only an
    administrator (``is_admin``) sees or changes what belongs to other tenants. Every method raises the errors of
    :mod:`lbaas_scheduler.errors` and no others on purpose, and changes nothing if it raises.

    Lists take, besides ``filters`` (attribute → value or values, of which one must hold) and ``fields``, the keywords ``sorts``
    (pairs of an attribute and whether ascending), ``limit``, ``marker`` and ``page_reverse``.
    """

    service = "LoadBalancer"

    @abstractmethod
    def create_vip(self, context: RequestContext, vip: Body) -> Document: ...

    @abstractmethod
    def get_vip(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document: ...

    @abstractmethod
    def get_vips(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]: ...

    @abstractmethod
    def update_vip(self, context: RequestContext, id: str, vip: Body) -> Document: ...

    @abstractmethod
    def delete_vip(self, context: RequestContext, id: str) -> None: ...

    @abstractmethod
    def reset_vip_status(self, context: RequestContext, id: str) -> Document: ...

    @abstractmethod
    def create_pool(self, context: RequestContext, pool: Body) -> Document: ...

    @abstractmethod
    def get_pool(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document: ...

    @abstractmethod
    def get_pools(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]: ...

    @abstractmethod
    def update_pool(self, context: RequestContext, id: str, pool: Body) -> Document: ...

    @abstractmethod
    def delete_pool(self, context: RequestContext, id: str) -> None: ...

    @abstractmethod
    def stats(self, context: RequestContext, pool_id: str) -> Document: ...

    @abstractmethod
    def simulate(self, context: RequestContext, vip: Body, count: int = 1) -> Document: ...

    @abstractmethod
    def create_member(self, context: RequestContext, member: Body) -> Document: ...

    @abstractmethod
    def get_member(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document: ...

    @abstractmethod
    def get_members(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]: ...

    @abstractmethod
    def update_member(self, context: RequestContext, id: str, member: Body) -> Document: ...

    @abstractmethod
    def delete_member(self, context: RequestContext, id: str) -> None: ...

    @abstractmethod
    def create_health_monitor(self, context: RequestContext, health_monitor: Body) -> Document: ...

    @abstractmethod
    def get_health_monitor(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document: ...

    @abstractmethod
    def get_health_monitors(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]: ...

    @abstractmethod
    def update_health_monitor(self, context: RequestContext, id: str, health_monitor: Body) -> Document: ...

    @abstractmethod
    def delete_health_monitor(self, context: RequestContext, id: str) -> None: ...

    @abstractmethod
    def create_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> Document: ...

    @abstractmethod
    def get_pool_health_monitor(
        self, context: RequestContext, health_monitor_id: str, pool_id: str, fields: Fields | None = None
    ) -> Document: ...

    @abstractmethod
    def delete_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> None: ...
