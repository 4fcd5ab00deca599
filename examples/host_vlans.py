"""Local VLANs of one host, in a file of its own: the allocator alone, without any server.

Every start finds what was there before; two processes may run it at once. Nothing of it is synchronised with anybody: the scope
says whose the values are, and the code is the one that serves a cluster.

    python examples/host_vlans.py /var/lib/host-vlans.sqlite take blue
    python examples/host_vlans.py /var/lib/host-vlans.sqlite list
    python examples/host_vlans.py /var/lib/host-vlans.sqlite give blue
"""

from __future__ import annotations

import sys

from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.standalone import open_allocator, open_sql
from lbaas_scheduler.errors import LBaaSError

SCOPE = "host:this"
POOL = Selector("vlan", "local", SCOPE)


def main(path: str, verb: str, network: str = "") -> int:
    driver = open_sql(f"sqlite:///{path}")
    allocator = open_allocator(driver)
    # The same definition again is fine.
    allocator.define(POOL, {"ranges": "2-10", "physical_network": "bridge-0", "pick": "lowest"})
    try:
        if verb == "take":
            print(allocator.allocate(Request("vlan", Owner("network", network), "local", SCOPE)).value)
        elif verb == "give":
            print(allocator.release_owner(Owner("network", network)))
        else:
            for grant in allocator.list(POOL):
                print(grant.value, grant.owner.id)
    except LBaaSError as error:
        print(error.message, file=sys.stderr)
        return 1
    finally:
        driver.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
