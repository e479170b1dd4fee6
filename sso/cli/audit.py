"""sso audit"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click
import orjson

from sso.cli.context import CommandFailure, with_services
from sso.cli.types import APPLICATION_ID, moment
from sso.perm.stores import audit
from sso.perm.stores.audit import MAX_PAGE, AuditFilter
from sso.perm.stores.projects import resolve_project_id
from sso.services import Services


@click.command()
@click.option("--project", help="Only changes that concern this project (id or alias).")
@click.option("--app", "app_id", type=APPLICATION_ID, help="Only changes that concern this application.")
@click.option("--user", help="Only changes by this user (id or login).")
@click.option("--operation", help="Only this operation, such as role.save.")
@click.option("--since", type=moment, help="Only from then on: Unix seconds, or a date such as 2030-12-31.")
@click.option("--most", type=click.IntRange(1), default=50, show_default=True, help="How many entries.")
@click.option("--json", "as_json", is_flag=True, help="Whole entries, before and after included, one per line.")
@click.pass_context
def command(
    ctx: click.Context,
    project: str | None,
    app_id: int | None,
    user: str | None,
    operation: str | None,
    since: int | None,
    most: int,
    as_json: bool,
) -> None:
    """Show who changed what in the permission model, the newest first.

    A line says when, what was done to what, by whom and from where, and which fields changed. What was done on the
    command line has no user, but the account of the operating system that ran the command. Secrets are never in it.
    """

    async def work(services: Services) -> list[dict[str, Any]]:
        return await _entries(
            services,
            AuditFilter(
                project_id=await resolve_project_id(services.database, project) if project else None,
                application_id=app_id,
                user_id=await _user_id(services, user) if user else None,
                operation=operation,
                since=since,
            ),
            most,
        )

    for entry in with_services(ctx, work):
        click.echo(orjson.dumps(entry) if as_json else line(entry))


async def _entries(services: Services, wanted: AuditFilter, most: int) -> list[dict[str, Any]]:
    """Page by page."""
    found: list[dict[str, Any]] = []
    while len(found) < most:
        page = await audit.read(services.database, replace(wanted, limit=min(MAX_PAGE, most - len(found))))
        found += page
        if not page:
            break
        wanted = replace(wanted, before_id=page[-1]["id"])
    return found


async def _user_id(services: Services, name: str) -> str:
    user = await services.users.find(name)
    if user is None:
        raise CommandFailure(f"there is no user {name}")
    return user.user_id


def line(entry: dict[str, Any]) -> str:
    who = f"user {entry['user_id']}" if entry["user_id"] else "command line"
    if entry["operator"]:
        who += f" ({entry['operator']})"
    if entry["service_id"] is not None:
        who += f" through application {entry['service_id']}"
    if entry["key_id"] is not None:
        who += f" with access key {entry['key_id']}"
    place = f" from {entry['address']}" if entry["address"] else ""
    changed = ", ".join(_changed(entry["before"], entry["after"]))
    return f"{entry['at']}  {entry['operation']}  {entry['target']}  by {who}{place}" + (
        f"  ({changed})" if changed else ""
    )


def _changed(before: Any, after: Any) -> Iterator[str]:
    """The fields that differ. For a new or a gone record there is nothing to compare."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield name
