"""The environment variables of the process. No other module reads them.

The settings among them are described in ``sso/settings.py`` and read by ``sso/config.py``. They are not imported here:
``sso --help`` and completion need a few variables only, and should answer at once.
"""

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLES: Mapping[str, str] = os.environ
CONFIG_FILE = "SSO_CONFIG"  # the variable that names the TOML file
SERVER = "SSO_SERVER"  # the variable that names the server of commands, see `sso --help`
CLIENT_ID, CLIENT_SECRET = "SSO_CLIENT_ID", "SSO_CLIENT_SECRET"  # variables of `sso replica`
NO_SETTINGS = (CONFIG_FILE, SERVER, CLIENT_ID, CLIENT_SECRET)


def allows_colour(environ: Mapping[str, str] = VARIABLES) -> bool:
    """Whether a terminal may be written to in colours; see https://no-color.org."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def named_config_file(environ: Mapping[str, str] = VARIABLES) -> Path | None:
    """Returns the TOML file that SSO_CONFIG names."""
    return Path(environ[CONFIG_FILE]) if environ.get(CONFIG_FILE) else None


def named_client_secret(environ: Mapping[str, str] = VARIABLES) -> str | None:
    """Returns the secret of a service client, which must not be in the arguments of a command."""
    return environ.get(CLIENT_SECRET)
