"""Endpoint: models."""
