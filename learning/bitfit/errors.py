"""What the library raises when a guarantee could not be kept."""


class PrivacyError(Exception):
    """Training cannot go on with the stated guarantee; the message says what to change."""


class CheckpointError(Exception):
    """A checkpoint or a result does not fit the model, the data or the mechanism it is loaded for."""
