"""Training, export and evaluation of the shipped entity tagger."""
