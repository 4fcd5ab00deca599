"""Acme's meshed load balancers."""
