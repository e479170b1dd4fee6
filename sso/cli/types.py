"""What people type: moments and application ids."""

from datetime import UTC, datetime

import click

from sso.core.ids import MAX_APPLICATION_ID

APPLICATION_ID = click.IntRange(1, MAX_APPLICATION_ID)


def moment(typed: str) -> int:
    """Unix seconds, or a date or time as in ISO 8601; without a zone it is UTC."""
    if typed.isascii() and typed.isdigit():
        return int(typed)
    try:
        found = datetime.fromisoformat(typed)
    except ValueError:
        raise click.BadParameter("must be Unix seconds, or a date such as 2030-12-31 or 2030-12-31T18:00Z") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
