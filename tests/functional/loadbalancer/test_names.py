"""What tenants write freely comes back to them as it was, and reaches no device."""

from __future__ import annotations

import json
from dataclasses import asdict

from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.rpc.codec import from_document, to_document
from lbaas_scheduler.vendors.envoy.resources import Terms
from lbaas_scheduler.vendors.envoy.resources import render as render_envoy
from lbaas_scheduler.vendors.haproxy.render import render_vip as render_haproxy
from tests.functional.loadbalancer.lab import Lab, tenant

MARK = "Needle"
HOSTILE = (
    f'{MARK}"; quit; "',
    f"{MARK}'\n  server evil 192.0.2.66:80\r\n.",
    f"{MARK} # ${{HOME}} %[env(HOME)] %(x)s {{{{ 7 * 7 }}}} $(id) `id` \\",
    f"{MARK}负载均衡器 \U0001f4a9 \u2028 \x85.",
    f'{MARK}]}}"}}}},\n- name: evil\n.',
)


def test_a_hostile_name_is_kept_for_its_tenant_and_is_in_no_configuration(any_lab: Lab) -> None:
    for number, name in enumerate(HOSTILE):
        any_lab.me = tenant(f"{number}{MARK}\"'#$(id)`;\\")
        build_and_render(any_lab, name)


def build_and_render(any_lab: Lab, name: str) -> None:
    network = any_lab.networks.create_network(any_lab.me, {"name": name})
    any_lab.subnet = any_lab.networks.create_subnet(
        any_lab.me, {"name": name, "network_id": network["id"], "cidr": "10.9.0.0/24"}
    )
    pool = any_lab.pool(name=name, description=name)
    any_lab.member(pool)
    any_lab.monitor(pool, url_path="/health")
    vip = any_lab.vip(pool, name=name, description=name)
    for shown in (any_lab.plugin.get_vip(any_lab.me, vip["id"]), any_lab.plugin.get_pool(any_lab.me, pool["id"])):
        assert (shown["name"], shown["description"]) == (name, name)
    assert [it["id"] for it in any_lab.plugin.get_vips(any_lab.me, {"name": [name]})] == [vip["id"]]

    sent = json.dumps(to_document(Deployment(any_lab.document(vip["id"]), Version(1, 1))))
    received = from_document(Deployment, json.loads(sent))
    haproxy = render_haproxy(received)
    envoy = json.dumps(asdict(render_envoy(received.vip, Terms(1, 1, 100))))
    assert not haproxy.errors
    for written in (haproxy.text, envoy):
        assert MARK not in written
        assert vip["id"] in written
