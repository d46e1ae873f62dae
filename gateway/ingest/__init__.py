"""From an uploaded file to searchable chunks: parse, detect, chunk, encode, store."""
