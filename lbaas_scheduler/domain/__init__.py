"""Values of the field: frozen dataclasses, enums and pure functions. Standard library only."""
