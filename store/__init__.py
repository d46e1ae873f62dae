"""Penname: store."""
