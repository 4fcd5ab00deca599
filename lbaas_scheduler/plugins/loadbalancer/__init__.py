"""The LoadBalancer service: LBaaS v1's nouns, their rules and states, on top of the device scheduler.

:mod:`.plugin` is the facade; each noun has a module of its own name. What a noun's change does to devices is in :mod:`.changes`
(before the commit), what devices answer in :mod:`.reports`.
"""
