"""Endpoint: health."""
