"""Measurements. No test run depends on their times; take ratios within one run, never absolute figures over runs."""
