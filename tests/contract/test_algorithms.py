"""What holds for every algorithm that is installed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.fleet import Source
from lbaas_scheduler.extensions import load_algorithms
from lbaas_scheduler.scheduler.algorithms.base import Algorithm
from tests.database import configured
from tests.factories import new_device, new_request

INSTALLED, _ = load_algorithms(configured("sqlite://"), "LoadBalancer")

SHIPPED = {
    "chance",
    "driver_choice",
    "first_available",
    "least_loaded",
    "most_loaded",
    "network_affinity",
    "tenant_affinity",
    "weighted",
    "wired",
}

candidates = st.lists(
    st.builds(
        Candidate,
        device=st.integers(1, 50).map(lambda number: new_device(f"d{number}", device_type=f"type-{number % 3}")),
        load=st.integers(0, 10_000),
        hosts_tenant=st.booleans(),
        networks=st.frozensets(st.sampled_from(["net-1", "net-2"])),
        weight=st.floats(0, 100),
    ),
    unique_by=lambda candidate: candidate.device.id,
    max_size=12,
)
requests = st.builds(
    lambda networks, strict: new_request("vip", networks=networks, options={"strict": strict}),
    st.sampled_from([(), ("net-1",), ("net-1", "net-2")]),
    st.booleans(),
)


def test_all_algorithms_of_the_document_are_shipped() -> None:
    assert INSTALLED.keys() >= SHIPPED


@pytest.mark.parametrize("algorithm", INSTALLED.values(), ids=INSTALLED.keys())
@given(request=requests, page=candidates, seed=st.integers())
def test_ranking_invents_no_device_and_repeats_none(algorithm: Algorithm, request, page, seed) -> None:
    ranked = algorithm.rank(request, page, Random(seed))
    assert sorted(it.device.id for it in ranked) == sorted(it.device.id for it in page)


@pytest.mark.parametrize("algorithm", INSTALLED.values(), ids=INSTALLED.keys())
@given(request=requests, page=candidates, seed=st.integers())
def test_the_same_page_and_seed_give_the_same_order(algorithm: Algorithm, request, page, seed) -> None:
    assert algorithm.rank(request, page, Random(seed)) == algorithm.rank(request, page, Random(seed))


@pytest.mark.parametrize("algorithm", INSTALLED.values(), ids=INSTALLED.keys())
@given(request=requests)
def test_unless_it_is_strict_an_algorithm_ends_with_a_source_that_holds_the_whole_fleet(algorithm: Algorithm, request) -> None:
    sources = algorithm.sources(replace(request, options={}))
    assert sources[-1] in (Source.BY_LOAD, Source.BY_FILL, Source.BY_AGE, Source.RANDOM)
    assert all(isinstance(source, Source) for source in algorithm.sources(request))
