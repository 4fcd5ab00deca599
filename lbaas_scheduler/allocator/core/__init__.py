"""Values, states, and the interfaces of drivers and kinds."""
