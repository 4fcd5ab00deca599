"""HAProxy: one master-worker process per device, one configuration file per VIP. See :mod:`.driver` and :mod:`.handler`."""
