"""Errors of backup and restore."""


class BackupError(Exception):
    """One line for the operator that says what is wrong and what to do."""
