"""The PPFT server: rows in, answers out, no text in."""
