"""The built pools that ship with the package: name lists, vectors and the manifest."""
