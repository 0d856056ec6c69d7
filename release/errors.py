"""The error that every command reports."""


class ReleaseError(Exception):
    """A release cannot continue. The message says what to do."""
