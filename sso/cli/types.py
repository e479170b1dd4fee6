"""Types of command-line arguments: times and application ids."""

import re
from datetime import UTC, datetime

import click

from sso.core.ids import MAX_APPLICATION_ID


def app_id(typed: str | int) -> int:
    """Converts the id of an application."""
    text = str(typed)
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_APPLICATION_ID:
        return int(text)
    raise click.BadParameter("expected the id of an application, such as 10; `sso app list` shows them")


APPLICATION_ID = app_id


def unix_time(typed: str) -> int:
    """Converts Unix seconds, or an ISO 8601 date or time (UTC unless it has a zone), to Unix seconds."""
    if typed.isascii() and typed.isdigit():
        return int(typed)
    try:
        time = datetime.fromisoformat(typed)
    except ValueError:
        raise click.BadParameter("expected Unix seconds, or a date such as 2030-12-31 or 2030-12-31T18:00Z") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())


def past_time(typed: str) -> datetime:
    """Converts an ISO 8601 time with a time zone."""
    try:
        time = datetime.fromisoformat(typed)
    except ValueError:
        raise click.BadParameter("expected a time such as 2026-11-15 12:00:00+00") from None
    if time.tzinfo is None:
        raise click.BadParameter("expected a time zone at the end: +00 for UTC")
    if time > datetime.now(UTC):
        raise click.BadParameter("expected a time in the past")
    return time


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def overlap_duration(typed: str) -> int:
    """Converts a time such as 7d, or 0, to seconds."""
    return 0 if typed == "0" else duration(typed)


def duration(typed: str) -> int:
    """Converts a time such as 90d to seconds."""
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", typed, re.ASCII)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter("expected a time such as 30m, 12h or 90d")
    return int(match[1]) * _UNITS[match[2]]
