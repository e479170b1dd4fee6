"""Errors of backup and restore."""

from sso.core.errors import OperatorError


class BackupError(OperatorError):
    """A backup cannot be made or restored."""
