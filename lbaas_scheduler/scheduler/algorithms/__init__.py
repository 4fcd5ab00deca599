"""The algorithms that are shipped, one a module. Users' own are registered under ``lbaas_scheduler.algorithms.<service>``."""
