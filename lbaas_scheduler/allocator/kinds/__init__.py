"""The kinds of resources that come with this package. Others come by the entry points ``lbaas_scheduler.resources``."""
