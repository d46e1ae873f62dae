"""Penname: gateway/api."""
