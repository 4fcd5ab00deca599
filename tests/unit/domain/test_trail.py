"""What is said of a placement that found no device."""

from __future__ import annotations

import pytest

from lbaas_scheduler.domain.trail import MAX_TOLD, Rejection, Trail


def test_an_administrator_is_told_which_device_said_what_and_the_telling_ones_first() -> None:
    trail = Trail(
        dropped={"device_type": 2, "excluded": 1, "handler.acme": 1},
        rejections=(
            Rejection("d1", "lb-1", "device_type", "is of type acme; wanted: haproxy"),
            Rejection("d2", "", "excluded", "was excluded by the request"),
            Rejection("d3", "lb-3", "handler.acme", "has no licence"),
        ),
    )
    assert trail.told() == (
        "2 × device_type, 1 × excluded, 1 × handler.acme. lb-3: has no licence; lb-1: is of type acme; wanted: haproxy; "
        "d2: was excluded by the request; …"
    )


def test_of_a_large_fleet_a_few_are_named() -> None:
    many = tuple(Rejection(f"d{number}", f"lb-{number}", "zone", "stands elsewhere") for number in range(20))
    told = Trail(dropped={"zone": 4000}, rejections=many).told()
    assert told.startswith("4000 × zone. lb-0: stands elsewhere; ")
    assert told.count("stands elsewhere") == MAX_TOLD
    assert told.endswith("; …")


def test_an_empty_fleet_has_nobody_to_name() -> None:
    assert Trail().told() == "no device of the wanted types is registered."


@pytest.mark.parametrize(
    ("dropped", "said"),
    [
        ({"capacity.VIPS": 17, "trait.PROTOCOL_HTTP": 5}, "has room now"),
        ({"network.vlans": 1}, "has room now"),
        ({"agent.down": 3, "device_type": 9}, "is in service now"),
        ({"trait.PROTOCOL_HTTP": 5, "handler.acme": 1}, "does what it asks for"),
        ({}, "does what it asks for"),
    ],
)
def test_a_tenant_is_told_one_sentence_that_names_and_counts_no_device(dropped: dict[str, int], said: str) -> None:
    rejections = (Rejection("d1", "lb-1", next(iter(dropped), "zone"), "has no room for 1 VIPS"),)
    sentence = Trail(dropped=dropped, rejections=rejections).for_tenants()
    assert said in sentence
    assert not any(letter.isdigit() for letter in sentence)
    assert "lb-" not in sentence
