"""The resource allocator: hands out VLANs, VXLANs, subnets and addresses, once each, from pools that operators define.

It stands on its own: it knows nothing of load balancing. One code serves a cluster (PostgreSQL, MariaDB, etcd), one host (SQLite)
and one process (memory). The parts, from below:

``core``        values, states, the interfaces of drivers and kinds
``keys``        every state's place in the store; refuses places that overlap; prints the tree
``drivers``     where states are kept: ``memory``, ``sql``, ``etcd``
``kinds``       what can be handed out: ``vlan``, ``vxlan``, ``subnet``, ``address``; others come by entry points
``windows``     which free value to try next
``planner``     a tree of requests → one transaction
``manager``     :class:`~lbaas_scheduler.allocator.manager.ResourceAllocator`, what callers use
``checks``      what must hold across pools and allocations
``reconcile``   what nobody wants any more is found and given back
"""
