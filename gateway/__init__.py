"""Penname: gateway."""
