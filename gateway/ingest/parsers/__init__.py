"""File formats: one parser a file, chosen by `registry.parse`."""
