"""Every error of the lower floors has its place in the one table."""

from __future__ import annotations

import inspect
import json

import falcon.testing
import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.api import errors as table
from lbaas_scheduler.errors import LBaaSError

ALL = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, LBaaSError) and cls is not LBaaSError]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_each_error_is_mapped_by_itself_or_by_a_parent_below_the_root(cls):
    mapped = next(parent for parent in cls.__mro__ if parent in table.STATUSES)
    assert mapped is not LBaaSError, f"{cls.__name__} would be a bare 500"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (errors.InvalidRequest(reason="x"), 400, "HTTPBadRequest"),
        (errors.ProtocolMismatch(vip_proto="TCP", pool_proto="HTTP"), 400, "ProtocolMismatch"),
        (errors.ServiceProviderNotFound(service_type="x"), 400, "ServiceProviderNotFound"),
        (errors.NotAuthorized(reason="x"), 403, "NotAuthorized"),
        (errors.VipNotFound(id="x"), 404, "VipNotFound"),
        (errors.VipExists(pool_id="x"), 409, "VipExists"),
        (errors.MemberExists(address="10.0.0.1", port=80, pool_id="x"), 409, "MemberExists"),
        (errors.StateInvalid(resource="Vip", id="x", state="PENDING_DELETE"), 409, "StateInvalid"),
        (errors.PoolInUse(pool_id="x", vip_id="y"), 409, "PoolInUse"),
        (errors.OverQuota(resource="vip", used=10, limit=10), 409, "OverQuota"),
        (errors.IpAddressGenerationFailure(subnet_id="x"), 409, "IpAddressGenerationFailure"),
        (errors.NoValidDevice(resource_id="x", summary="none."), 503, "NoEligibleBackend"),
        (errors.DriverError("It failed.", operator_message="password hunter2"), 502, "DriverError"),
        (errors.Unavailable(dependency="The database", reason="gone"), 503, "Unavailable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, LBaaSError) else None,
)
def test_an_error_becomes_the_body_that_v1_clients_read(error, status, kind):
    answer = _answer(error)
    assert answer.status_code == status
    assert answer.json == {"NeutronError": {"type": kind, "message": error.message, "detail": ""}}


def test_why_each_device_was_refused_is_the_detail_where_the_error_has_it():
    trail = {"algorithm": "least_loaded", "rejections": [{"device_id": "d", "code": "zone"}]}
    answer = _answer(errors.NoValidDevice(resource_id="x", summary="1 × zone.", trail=trail))
    assert json.loads(answer.json["NeutronError"]["detail"]) == trail


def test_what_is_away_says_when_to_try_again():
    assert _answer(errors.Unavailable(dependency="The database", reason="gone")).headers["Retry-After"] == "5"


@pytest.mark.parametrize("error", [errors.ConfigurationError(reason="the key is 'hunter2'"), RuntimeError("hunter2")])
def test_what_went_wrong_inside_stays_inside(error):
    answer = _answer(error)
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.json["NeutronError"]["message"].startswith("The server failed to answer")


def _answer(error: Exception) -> falcon.testing.Result:
    class Broken:
        def on_get(self, _req: falcon.Request, _resp: falcon.Response) -> None:
            raise error

    app = falcon.App()
    app.add_error_handler(Exception, table.handle_unknown)
    app.add_error_handler(falcon.HTTPError, table.handle_http)
    app.add_error_handler(LBaaSError, table.handle_own)
    app.add_route("/", Broken())
    return falcon.testing.TestClient(app).simulate_get("/")
