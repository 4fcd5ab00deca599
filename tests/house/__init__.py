"""The house rules that a program can check."""
