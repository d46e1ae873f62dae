"""The command line: `penname ...`; each command imports what it needs when it runs."""
