"""A vendor without a device: it keeps what it is told, and fails, hangs or lies on request. The example for vendors.

Read in this order: :mod:`.handler` (what a vendor says to the scheduler), :mod:`.driver` (how desired state gets onto a
device), :mod:`.options` (a vendor's own configuration). :mod:`.faults` and :mod:`.rack` are what makes it a fake.
"""
