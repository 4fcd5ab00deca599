"""The attribute maps of LBaaS v1, and the rules between attributes."""
