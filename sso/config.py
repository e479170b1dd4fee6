"""Reads the settings.

Every setting of ``sso/settings.py`` is an environment variable ``SSO_*``, or an entry of the same name in a TOML file;
the environment takes precedence. An invalid or unknown setting ends the program with one line that names it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sso.core.bus_url import parse_bus_url
from sso.core.errors import OperatorError
from sso.core.setting import setting_fields, setting_info
from sso.core.test_players import EXAMPLE_PASSWORD, PUBLIC_PASSWORD
from sso.environment import NO_SETTINGS, VARIABLES, named_config_file
from sso.settings import Settings

__all__ = ["ConfigError", "Settings", "load"]

PREFIX = "SSO_"
SETTINGS = {PREFIX + name.upper(): item for name, item in setting_fields(Settings).items()}


class ConfigError(OperatorError):
    """A setting is invalid; the text is one line that names it."""


def load(config_file: Path | None = None, environ: Mapping[str, str] = VARIABLES) -> Settings:
    """Returns the settings of the environment and of a file: the given one, or the one that SSO_CONFIG names."""
    variables = {name: value for name, value in environ.items() if name.startswith(PREFIX) and name not in NO_SETTINGS}
    path = config_file or named_config_file(environ)
    given = (_from_file(path) if path else {}) | variables
    given = {name: value for name, value in given.items() if _check_name(name) and value != ""}
    parsed = {item.name: _parse(name, given[name]) for name, item in SETTINGS.items() if name in given}
    if parsed.get("wal_archive") and parsed.get("database_url"):
        raise ConfigError(
            "SSO_WAL_ARCHIVE: is for the embedded PostgreSQL: with SSO_DATABASE_URL, use your server's archive_command"
        )
    bus_url = parsed.get("bus_url")
    if parsed.get("bus_ca_file") and not (bus_url and parse_bus_url(bus_url.get_secret_value()).tls):
        raise ConfigError("SSO_BUS_CA_FILE: is for an SSO_BUS_URL that begins with tls://")
    smtp_url = parsed.get("smtp_url")
    if parsed.get("smtp_ca_file") and smtp_url and urlsplit(smtp_url.get_secret_value()).scheme == "smtp":
        raise ConfigError("SSO_SMTP_CA_FILE: is for an SSO_SMTP_URL that begins with smtps:// or smtp+starttls://")
    settings = Settings(**parsed, has_base_url="base_url" in parsed)
    if settings.test_player_password:
        _check_test_player_password(settings, settings.test_player_password.get_secret_value())
    return settings


def _check_test_player_password(settings: Settings, password: str) -> None:
    """Raises ConfigError for a published password; that of the demo is accepted if only this machine can connect."""
    known = password.strip().casefold()
    if known == EXAMPLE_PASSWORD or (known == PUBLIC_PASSWORD and not settings.is_private):
        raise ConfigError("SSO_TEST_PLAYER_PASSWORD: this password is public: choose another one, or unset it")


def _check_name(name: str) -> bool:
    if name not in SETTINGS:
        raise ConfigError(f"{name}: there is no such setting")
    return True


def _parse(name: str, value: object) -> Any:
    try:
        return setting_info(SETTINGS[name]).parse(value)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def _from_file(path: Path) -> dict[str, Any]:
    import tomllib  # slow to import, and needed with a file only

    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    for name in entries:
        if not name.startswith(PREFIX):
            raise ConfigError(f"{path}: {name}: there is no such setting (names begin with {PREFIX})")
    return entries
