"""sso app …"""

from pathlib import Path
from typing import Any

import click
import orjson

from sso.cli.context import CommandFailure, console, with_services
from sso.cli.types import APPLICATION_ID
from sso.core import keys as material
from sso.core.encryption import Keyring
from sso.core.keys import UnusableKey
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner, Transaction
from sso.perm.credentials import email_secret
from sso.perm.input.service import read_application_fields
from sso.perm.stores import audit
from sso.perm.stores.applications import create_application, private_key, read_row, written
from sso.services import Services

APP_ID = click.argument("app_id", type=APPLICATION_ID)

_LIST = Statement(
    """SELECT a.application_id, a.name, a.project_id, a.removed OR coalesce(p.removed, false) AS removed
    FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE CAST(:project_id AS text) IS NULL OR a.project_id = :project_id ORDER BY a.application_id"""
)


@click.group()
def command() -> None:
    """Applications: their keys, service JWTs and e-mail secrets.

    Schemas, roles and access keys of applications are loaded with `sso apply`, or managed over the API.
    """


@command.command("list")
@click.option("--project", "project_id", help="Only applications of this project.")
@click.pass_context
def list_applications(ctx: click.Context, project_id: str | None) -> None:
    """List applications: id, name, project, and whether they are removed."""

    async def work(services: Services) -> list[Row]:
        return await services.database.rows(_LIST, project_id=project_id)

    for row in with_services(ctx, work):
        marks = ["removed"] if row["removed"] else []
        click.echo("\t".join([str(row["application_id"]), row["name"], row["project_id"] or "-", *marks]))


@command.command()
@APP_ID
@click.pass_context
def show(ctx: click.Context, app_id: int) -> None:
    """Show an application as JSON: record, public keys, access keys without their values."""

    async def work(services: Services) -> dict[str, Any]:
        row = await _found(services.database, app_id)
        names = ("application_id", "name", "description", "project_id", "removed", "settings", "service_meta")
        return {
            **{name: row[name] for name in names},
            "schema_version": row["version"],
            "private_key": "held" if row["private_key_sealed"] else "none",
            "public_keys": await services.permissions.application_keys.published(app_id),
            "access_keys": await services.permissions.access_keys.list(app_id),
        }

    click.echo(orjson.dumps(with_services(ctx, work), option=orjson.OPT_INDENT_2))


@command.command()
@click.argument("name")
@click.option("--project", "project_id", help="The id of the project that it shall belong to.")
@click.option("--description", default="", help="What it is, in a sentence.")
@click.pass_context
def create(ctx: click.Context, name: str, project_id: str | None, description: str) -> None:
    """Create an application called NAME; prints its id."""
    given, _ = read_application_fields({"name": name, "description": description, "project_id": project_id})

    async def work(services: Services) -> Row:
        async def make(tx: Transaction) -> Row:
            return await create_application(tx, console(), services.keyring, given)

        return await written(services.database, make)

    click.echo(f"application_id {with_services(ctx, work)['application_id']}")


@command.command("service-jwt")
@APP_ID
@click.pass_context
def service_jwt(ctx: click.Context, app_id: int) -> None:
    """Print a service JWT of an application, good for an hour.

    Only for applications whose private key the service holds (service_meta.private_key, with the public key beside it).
    Others sign their own: header kid, claims typ "service_token", app_id, aud (the base URL), iat, exp.
    """

    async def work(services: Services) -> str:
        row = await _found(services.database, app_id)
        perm = services.permissions
        pem = _held_key(services.keyring, row)
        kid = material.key_id(material.load_private(pem).public_key())
        if await perm.application_keys.find(app_id, kid) is None:
            raise CommandFailure("the public key of the private key that is held is not among the application's keys")
        return perm.service_jwts.issue(app_id, pem)

    click.echo(with_services(ctx, work))


@command.command("email-secret")
@APP_ID
@click.pass_context
def print_email_secret(ctx: click.Context, app_id: int) -> None:
    """Print the secret that an application sends as with_email to see login e-mails; made if there is none.

    For logins without an application that of the central one, 1, counts.
    """

    async def work(services: Services) -> str | None:
        await _found(services.database, app_id)
        return await email_secret.make_or_read(services.database, services.keyring, app_id, console())

    click.echo(f"email-secret of application {app_id}: {with_services(ctx, work)}")


@command.group()
def key() -> None:
    """Public keys that an application may sign service JWTs with, besides that of its service_meta.

    A file keys/APP_ID.pem in the data directory counts as well.
    """


@key.command("add")
@APP_ID
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def add_key(ctx: click.Context, app_id: int, file: Path) -> None:
    """Trust the public key in FILE (PEM; RSA, EC P-256 or Ed25519); prints its id, the kid of what it signs."""
    try:
        pem = file.read_text()
        material.load_public(pem)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(f"cannot read {file}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except UnusableKey as error:
        raise CommandFailure(f"{file}: {error}") from None

    async def work(services: Services) -> str:
        async def add(tx: Transaction) -> str:
            row = await _found(tx, app_id)
            kid = await services.permissions.application_keys.add_custom(tx, app_id, pem)
            await _audit(tx, "application.key.add", row, None, kid)
            return kid

        return await services.database.transaction(add)

    click.echo(f"kid {with_services(ctx, work)}")


@key.command("list")
@APP_ID
@click.pass_context
def list_keys(ctx: click.Context, app_id: int) -> None:
    """List the ids and kinds of the keys that are trusted."""

    async def work(services: Services) -> list[dict[str, str]]:
        await _found(services.database, app_id)
        return await services.permissions.application_keys.published(app_id)

    for item in with_services(ctx, work):
        click.echo(f"{item['id']}\t{material.algorithm_of(material.load_public(item['data']))}")


@key.command("remove")
@APP_ID
@click.argument("kid")
@click.pass_context
def remove_key(ctx: click.Context, app_id: int, kid: str) -> None:
    """Trust a key that was added with `sso app key add` no longer."""

    async def work(services: Services) -> bool:
        async def remove(tx: Transaction) -> bool:
            row = await _found(tx, app_id)
            gone = await services.permissions.application_keys.remove_custom(tx, app_id, kid)
            if gone:
                await _audit(tx, "application.key.remove", row, kid, None)
            return gone

        return await services.database.transaction(remove)

    if not with_services(ctx, work):
        raise CommandFailure(f"application {app_id} has no key {kid} that was added by hand")
    click.echo(f"{kid} is removed")


async def _found(runner: Runner, app_id: int) -> Row:
    row = await read_row(runner, app_id)
    if row is None:
        raise CommandFailure(f"there is no application {app_id}; `sso app list` shows them")
    return row


def _held_key(keyring: Keyring, row: Row) -> str:
    pem = private_key(keyring, row)
    if not pem:
        raise CommandFailure(
            "the service holds no private key of this application: save it in service_meta.private_key"
        )
    try:
        material.load_private(pem)
    except UnusableKey as error:
        raise CommandFailure(f"the private key of this application cannot be used: {error}") from None
    return pem


async def _audit(tx: Transaction, operation: str, row: Row, old: str | None, new: str | None) -> None:
    names = {"project_id": row["project_id"], "application_id": row["application_id"]}
    before, after = {"kid": old} if old else None, {"kid": new} if new else None
    await audit.write(tx, console(), operation, f"{row['application_id']}/{new or old}", before, after, **names)
