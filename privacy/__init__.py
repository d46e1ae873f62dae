"""Penname: privacy."""
