"""python-neutronclient as it was published, against a running server, agent and data plane."""
