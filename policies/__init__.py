"""Penname: policies."""
