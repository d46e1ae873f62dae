"""The embedding-only backend (DESIGN 8.2): exported data, training, serving, attacks.

Nothing here needs text of anybody's prompt: the server learns and answers from noised rows.
"""
