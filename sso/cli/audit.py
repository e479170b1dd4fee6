"""sso audit"""

from collections.abc import Iterator
from typing import Any

import click

from sso.cli.output import Format, Record, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import AuditCriteria
from sso.cli.types import APPLICATION_ID, unix_time


@click.command()
@click.option("--project", help="Only changes that concern this project (id or alias).")
@click.option("--app", "app_id", type=APPLICATION_ID, help="Only changes that concern this application.")
@click.option("--user", help="Only changes by this user (id or login).")
@click.option("--operation", help="Only this operation, such as role.save.")
@click.option(
    "--since",
    type=unix_time,
    metavar="TIME",
    help="Only changes since then: Unix seconds, or a date such as 2026-01-31.",
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of entries."
)
@list_options
@click.pass_context
def command(
    ctx: click.Context,
    project: str | None,
    app_id: int | None,
    user: str | None,
    operation: str | None,
    since: int | None,
    limit: int,
    form: Format | None,
) -> None:
    """Show the audit trail of the permission model, newest entry first.

    A line has the time, the operation, its target, the user, the address and the changed fields. With --json, entries
    are complete, with the values before and after. Changes made on the command line have the account of the operating
    system instead of a user. Secrets are never recorded.

    \b
    Example:
      sso audit --project red_dawn --operation role.save --since 2026-01-31
    """

    criteria = AuditCriteria(project, app_id, user, operation, since)
    entries = with_records(ctx, lambda records: records.audit.entries(criteria, limit))
    print_list(form, entries if form == "json" else [_listed(entry) for entry in entries])


def _listed(entry: dict[str, Any]) -> Record:
    return {
        "time": entry["at"],
        "operation": entry["operation"],
        "target": entry["target"],
        "by": _actor(entry),
        "from": entry["address"],
        "changed": list(_changed_fields(entry["before"], entry["after"])),
    }


def _actor(entry: dict[str, Any]) -> str:
    if entry["user_id"]:
        actor = f"user {entry['user_id']}"
    else:
        actor = "command line" if entry["service_id"] is None else f"application {entry['service_id']}"
    if entry["operator"]:
        actor += f" ({entry['operator']})"
    if entry["service_id"] is not None and entry["user_id"]:
        actor += f" through application {entry['service_id']}"
    if entry["client_id"] is not None:
        actor += f" with client {entry['client_id']}"
    if entry["key_id"] is not None:
        actor += f" with access key {entry['key_id']}"
    return actor


def _changed_fields(before: Any, after: Any) -> Iterator[str]:
    """Yields the names of the fields that differ; none for a record that was created or removed."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield name
