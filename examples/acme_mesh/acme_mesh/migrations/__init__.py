"""The revisions of this package's tables: a branch of its own in the history of the scheduler's database."""
