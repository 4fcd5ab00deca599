"""LBaaS scheduler: places VIPs on a fleet of load-balancer devices and drives them through agents."""
