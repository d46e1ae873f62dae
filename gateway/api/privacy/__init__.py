"""Endpoint: privacy."""
