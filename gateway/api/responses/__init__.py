"""Endpoint: responses."""
