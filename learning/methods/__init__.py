"""Methods of fine-tuning.  A module of this package with a ``METHOD`` is one; adding a file adds it."""
