"""Options, one module per group. Nothing here reads a value: whoever needs one is handed ``conf`` or the plain value."""
