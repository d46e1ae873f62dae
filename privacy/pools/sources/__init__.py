"""Public name lists from which the pools are built; see README.md for sources and licences."""
