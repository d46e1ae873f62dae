"""Files: upload, list, read, delete.  Contents stay here, encrypted; nothing goes to a provider."""
