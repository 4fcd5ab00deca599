"""A firewall service: its resources, its algorithm and the devices of one vendor."""
