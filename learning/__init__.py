"""Penname: learning."""
