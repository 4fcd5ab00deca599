"""``lbaas-scheduler``: the command line for operators and tenants. It speaks HTTP to the REST API and knows nothing else of it.

It needs the extra ``cli``; ``entry`` is what runs without it, too.
"""
