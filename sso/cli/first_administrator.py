"""How to create the first administrator of a service that has no users."""

import shlex
import sys
from pathlib import Path

from sso.config import Settings
from sso.core.test_players import IS_TEST_PLAYER_SQL
from sso.db.standalone import fetch_value
from sso.environment import named_config_file


def has_users(dsn: str) -> bool:
    """Returns whether there are users other than test players, who cannot be administrators."""
    exist: bool = fetch_value(dsn, f"SELECT EXISTS (SELECT FROM users WHERE NOT {IS_TEST_PLAYER_SQL})")
    return exist


def creation_command(settings: Settings, config_file: Path | None) -> str:
    """Returns a command for another terminal: with the data directory, and with the paths of all files.

    Settings with secrets, such as SSO_DATABASE_URL, are not part of it.
    """
    variables = {"SSO_DATA_DIR": str(settings.data_dir.resolve())} | (
        {"SSO_USER": settings.user} if settings.user else {}
    )
    file = config_file or named_config_file()
    options = ["--config", str(file.resolve())] if file else []
    words = [*_program(), *options, "user", "add", "admin@example.com", "--admin"]
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)])


def how_to_create(settings: Settings, command: str) -> str:
    has_secrets = settings.database_url or settings.secret_key
    terminal = "in a second terminal" + (" with the same SSO_* settings" if has_secrets else "")
    return f"There are no users yet. Create the first administrator, {terminal}:\n    {command}"


def _program() -> list[str]:
    """Returns the absolute path of this program: the other terminal may have another PATH."""
    if Path(sys.argv[0]).name == "__main__.py":
        return [sys.executable, "-m", "sso"]
    return [str(Path.cwd() / sys.argv[0])]
