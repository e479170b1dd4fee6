"""sso config …"""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import Field
from typing import Any

import click

from sso.cli.command_groups import Subcommands
from sso.cli.echo import echo
from sso.config import SETTINGS
from sso.core.setting import default_in_words, plain_value, setting_info

WIDTH = 100
HEAD = """\
# Settings of sso, printed by `sso config example`.
#
# Lines that begin with "#SSO_" are settings, with their defaults or with an example: remove the "#" to change one.
# Start the service with `sso --config FILE serve`, or name the file in the environment variable SSO_CONFIG. Every
# setting can also be an environment variable of the same name, which takes precedence over this file.
"""
# The settings with which the sections begin.
SECTIONS = {
    "SSO_BIND": "Addresses",
    "SSO_DATA_DIR": "Data",
    "SSO_WORKERS": "Processes",
    "SSO_RATE_LOGIN": "Sign-in",
    "SSO_OAUTH_SESSION_S": "OAuth",
    "SSO_VENDOR": "Games",
    "SSO_SMTP_URL": "Mail",
    "SSO_BRAND_NAME": "Brand",
    "SSO_LOG_FORMAT": "Logs and telemetry",
}


@click.group(cls=Subcommands)
def command() -> None:
    """Print an example of a settings file.

    \b
    Example:
      sso config example > sso.toml
    """


@command.command()
def example() -> None:
    """Print a settings file with every setting, its description and its default. All settings are commented out.

    \b
    Example:
      sso config example > sso.toml
      sso --config sso.toml serve
    """
    echo("\n".join(_lines()))


def _lines() -> Iterator[str]:
    yield HEAD
    for name, item in SETTINGS.items():
        if name in SECTIONS:
            yield f"\n# {SECTIONS[name]}\n# {'-' * len(SECTIONS[name])}\n"
        yield from (
            f"# {line}" for line in textwrap.wrap(setting_info(item).description, WIDTH - 2, break_on_hyphens=False)
        )
        yield f"# Default: {default_in_words(item)}"
        yield f"#{name} = {_value(item)}\n"


def _value(item: Field[Any]) -> str:
    """Returns the default, or the example of a setting without one, as TOML."""
    sample = setting_info(item).example
    return json.dumps(plain_value(item.default) if sample is None else sample, ensure_ascii=False)
