"""Penname: connectors."""
