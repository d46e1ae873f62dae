"""What the store raises.  No message here ever holds a value that somebody stored."""


class StoreError(Exception):
    """Base of everything that the store raises on purpose."""


class InvalidInput(StoreError, ValueError):
    """An argument that an operator gave cannot be used; the message says what may."""


class StoreUnavailable(StoreError):
    """The database cannot serve now: locked, full, read-only, unreachable.

    The message says what to do.  Nothing was written by the call that raised it.
    """


class StoreConflict(StoreError):
    """The change breaks a uniqueness rule, for example a substitute issued twice in a session."""


class NotFound(StoreError):
    """The thing asked for does not exist for this tenant."""


class UnknownTenant(NotFound):
    """The tenant does not exist, or was forgotten."""


class MasterKeyError(StoreError):
    """The master key is missing, malformed, badly protected, or not the one of this database."""


class SealBroken(StoreError):
    """A stored value cannot be decrypted: damaged, moved to another row, or under another key."""


class SchemaTooNew(StoreError):
    """The database was written by a newer version of this program."""
