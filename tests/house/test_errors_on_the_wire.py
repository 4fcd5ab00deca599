"""Every error keeps its type, its message and its facts on its way over the bus.

``fake://`` hands the very object over and would hide a loss, hence the serialisation itself is tested.
"""

from __future__ import annotations

import json
import sys

import pytest
from oslo_messaging._drivers import common as wire

from lbaas_scheduler import errors


def _tree(cls: type[errors.LBaaSError]) -> list[type[errors.LBaaSError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _tree(child))]


ALL = [cls for cls in _tree(errors.LBaaSError) if cls.__module__ == errors.__name__]
FACTS = {"id": "42", "resource": "Vip", "pool_id": "p-1", "port": 80, "addresses": ["2001:db8::1"], "reason": "它不对 {x} \"'\n"}


def _over_the_bus(error: errors.LBaaSError) -> BaseException:
    try:
        raise error
    except errors.LBaaSError:
        data = wire.serialize_remote_exception(sys.exc_info())
    return wire.deserialize_remote_exception(json.dumps(json.loads(data)), [errors.__name__])


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_arrives_as_what_it_was(cls):
    sent = cls(**FACTS)
    arrived = _over_the_bus(sent)
    assert isinstance(arrived, cls)
    assert arrived.message == sent.message
    assert arrived.details == sent.details == FACTS


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_keeps_a_message_of_its_own(cls):
    assert _over_the_bus(cls("Said in these words.")).message == "Said in these words."  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_is_drawn_in_the_tree(cls):
    assert cls.__name__ in (errors.__doc__ or "")


def test_the_operators_text_of_a_driver_error_stays_on_its_side():
    text = "password 'hunter2' was refused"
    try:
        raise errors.DriverError("It failed.", operator_message=text)
    except errors.DriverError:
        data = wire.serialize_remote_exception(sys.exc_info())
    assert text not in data
    assert "hunter2" not in data
