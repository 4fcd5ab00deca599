"""What a vendor's package depends on. See ``doc/source/vendors.rst`` for a walk through."""
