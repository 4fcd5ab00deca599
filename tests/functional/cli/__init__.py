"""The command line against a running server, agent and data plane."""
