"""The data directory of a command: which one it is, and that no command creates one silently.

``serve``, ``apply``, ``migrate``, ``restore`` and ``user add`` create it and say so. All other commands need an
existing one: a mistyped or forgotten SSO_DATA_DIR must not lead to a second, empty database.
"""

from sso.cli.echo import echo
from sso.config import Settings
from sso.core.errors import OperatorError

HOW = "set SSO_DATA_DIR to the data directory of the service, or create a new one with `sso serve`"


class NoDataDirectory(OperatorError):
    """The text is one line: the path, the setting, and how a data directory is created."""


def is_missing(settings: Settings) -> bool:
    """Whether the data directory, or the embedded database in it, has to be created."""
    if settings.database_url is None:
        from sso.db.embedded.paths import has_database

        return not has_database(settings.data_dir)
    return not settings.data_dir.exists()


def require_data_directory(settings: Settings) -> None:
    """Raises NoDataDirectory."""
    path = settings.data_dir.resolve()
    if not path.exists():
        raise NoDataDirectory(f"there is no data directory at {path}: {HOW}")
    if is_missing(settings):
        raise NoDataDirectory(f"there is no database in the data directory {path}: {HOW}")


def announce_creation(settings: Settings) -> None:
    """Says on standard error that a data directory is created, if that is the case."""
    if is_missing(settings):
        echo(f"creating a data directory at {settings.data_dir.resolve()}", err=True)
