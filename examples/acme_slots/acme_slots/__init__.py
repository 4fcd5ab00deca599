"""Numbered slots."""
