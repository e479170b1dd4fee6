from sso.core.errors import OperatorError


class BackupError(OperatorError):
    """A backup cannot be made or restored."""
