"""The commands, one file per noun, each with a table ``COMMANDS`` of names and classes."""
