"""The agent: applies desired state to devices through vendors' drivers and reports back. Has no database."""
