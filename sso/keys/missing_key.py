"""Detects that the master key of a database was not given to this program.

Without this check, the program would create a key file next to it. A command that root runs without the service's
SSO_SECRET_KEY would do so in the data directory of the service.
"""

from sso.config import Settings
from sso.core.errors import OperatorError


class MasterKeyMissing(OperatorError):
    def __init__(self, settings: Settings) -> None:
        super().__init__(
            "SSO_SECRET_KEY: the secrets in the database are encrypted with a master key, which is neither set nor in "
            f"{settings.key_file.resolve()}: use the settings of the service, or restore that file"
        )


def is_master_key_missing(settings: Settings, dsn: str) -> bool:
    """Returns whether the database has secrets, but the settings and the data directory have no master key."""
    if settings.secret_key is not None or settings.key_file.exists():
        return False
    from sso.db.standalone import fetch_value

    missing: bool = fetch_value(dsn, "SELECT EXISTS (SELECT FROM signing_keys)")
    return missing
