"""Vector stores: attach files, search them.  Texts and vectors stay here, encrypted."""
