"""Arguments and options that several commands have."""

import click

from sso.cli.context import utf8_argument
from sso.cli.types import APPLICATION_ID, unix_time
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

USER = click.argument("user", callback=utf8_argument)
PROJECT = click.argument("project", callback=utf8_argument)
ROLE = click.argument("role", callback=utf8_argument)
APP_OR_CENTRAL = click.option(
    "--app",
    "app_id",
    type=APPLICATION_ID,
    default=CENTRAL_APPLICATION_ID,
    show_default=True,
    help="Application id; 1 is the central application.",
)
DESCRIPTION = click.option("--description", callback=utf8_argument, help="One sentence about it.")
TTL = click.option(
    "--ttl",
    metavar="SECONDS",
    type=click.IntRange(0),
    default=0,
    help="Seconds that the role stays valid after each read.",
)
UNTIL = click.option(
    "--until",
    "expired",
    type=unix_time,
    metavar="TIME",
    default="0",
    help="When the role ends: Unix seconds, or a date such as 2030-12-31.",
)
