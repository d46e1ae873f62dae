"""Endpoint: chat."""
