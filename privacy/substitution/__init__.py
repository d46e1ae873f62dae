"""Substitution: from detected spans to a sanitised text, pure and without I/O (DESIGN 3.4, 3.5)."""
