"""sso app …"""

from pathlib import Path
from typing import Any

import click

from sso.cli.context import CommandFailure, command_line_actor, utf8_argument, with_services
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_application, require_project
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.cli.types import APPLICATION_ID
from sso.core import keys as material
from sso.core.encryption import Keyring
from sso.core.keys import UnusableKey
from sso.db.statement import Statement
from sso.db.transaction import Row, Transaction
from sso.keys.shared_settings import require_shared_settings
from sso.perm.changes.scope import Scope
from sso.perm.stores import audit
from sso.perm.stores.access_keys import list_access_keys
from sso.perm.stores.application_keys import add_custom_key, delete_custom_key
from sso.perm.stores.applications import (
    application_name_conflicts,
    create_application,
    private_key,
)
from sso.perm.stores.email_secret import get_or_create_email_secret

APP_ID = click.argument("app_id", type=APPLICATION_ID)

_LIST = Statement(
    """SELECT a.application_id, a.name, a.project_id, a.removed OR coalesce(p.removed, false) AS removed
    FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE CAST(:project_id AS text) IS NULL OR a.project_id = :project_id ORDER BY a.application_id"""
)


@click.group(cls=Subcommands)
def command() -> None:
    """Manage applications: keys, service JWTs, e-mail secrets.

    `sso role` manages the roles of an application; its schema and its access keys are managed with `sso apply` or over
    the API.

    \b
    Example:
      sso app add Tanks --project red_dawn
      sso app key add 40 tanks.pem
    """


@command.command("list")
@click.option("--project", callback=utf8_argument, help="Only applications of this project (id or alias).")
@list_options
@click.pass_context
def list_applications(ctx: click.Context, project: str | None, form: Format | None) -> None:
    """List the applications: id, name, project, and "removed" if that is so.

    \b
    Example:
      sso app list --project red_dawn
    """

    async def work(services: CommandServices) -> list[Row]:
        project_id = (await require_project(services.database, project))["id"] if project else None
        return await services.database.rows(_LIST, project_id=project_id)

    def line(record: Record) -> list[object]:
        marks = ["removed"] if record["removed"] else []
        return [record["application_id"], record["name"], record["project_id"] or "-", *marks]

    print_list(form, [dict(row) for row in with_services(ctx, work)], line)


@command.command()
@APP_ID
@record_options
@click.pass_context
def show(ctx: click.Context, app_id: int, form: Format | None) -> None:
    """Show an application with its public keys and its access keys (without their values).

    \b
    Example:
      sso app show 40
    """

    async def work(services: CommandServices) -> dict[str, Any]:
        row = await require_application(services.database, app_id)
        names = ("application_id", "name", "description", "project_id", "removed", "settings", "service_meta")
        return {
            **{name: row[name] for name in names},
            "schema_version": row["version"],
            "private_key": "held" if row["private_key_sealed"] else "none",
            "public_keys": await services.complete.permissions.application_keys.published(app_id),
            "access_keys": await list_access_keys(services.database, app_id),
        }

    print_record(form, with_services(ctx, work))


@command.command()
@click.argument("name", callback=utf8_argument)
@click.option("--project", callback=utf8_argument, help="Project that it belongs to (id or alias).")
@click.option("--description", default="", callback=utf8_argument, help="One sentence about it.")
@click.pass_context
def add(ctx: click.Context, name: str, project: str | None, description: str) -> None:
    """Add an application with the name NAME and print its id.

    \b
    Example:
      sso app add Tanks --project red_dawn
    """

    async def work(services: CommandServices) -> Row:
        from sso.perm.input.application import read_application_fields

        project_id = (await require_project(services.database, project))["id"] if project else None
        fields, _ = read_application_fields({"name": name, "description": description, "project_id": project_id})
        with application_name_conflicts():
            return await write_permissions(
                services,
                Scope.project(project_id),
                create_application,
                services.actor,
                services.keyring,
                fields,
                None,
            )

    with option_errors({"name": "NAME", "description": "--description"}, f"project {project}"):
        click.echo(f"application_id {with_services(ctx, work)['application_id']}")


@command.command("service-jwt")
@APP_ID
@click.pass_context
def service_jwt(ctx: click.Context, app_id: int) -> None:
    """Print a service JWT of an application, valid for one hour.

    This needs the application's private key in service_meta.private_key, and its public key in
    service_meta.public_key. Applications that keep their private key sign their own JWTs: header kid, claims typ
    "service_token", app_id, aud (the base URL), iat, exp.

    \b
    Example:
      sso app service-jwt 40
    """

    async def work(services: CommandServices) -> str:
        require_shared_settings(services.settings)  # the base URL is the audience
        row = await require_application(services.database, app_id)
        perm = services.complete.permissions
        pem = _stored_private_key(services.keyring, row)
        kid = material.key_id(material.load_private(pem).public_key())
        if await perm.application_keys.find(app_id, kid) is None:
            raise CommandFailure(
                "the public key that belongs to the stored private key is not among the application's keys"
            )
        return perm.service_jwts.issue(app_id, pem, await services.database_time())

    click.echo(with_services(ctx, work))


@command.command("email-secret")
@APP_ID
@click.pass_context
def print_email_secret(ctx: click.Context, app_id: int) -> None:
    """Print the secret that an application sends as with_email to see e-mail addresses; create it if there is none.

    Logins without an application use the secret of the central application, 1.

    \b
    Example:
      sso app email-secret 40
    """

    async def work(services: CommandServices) -> str | None:
        await require_application(services.database, app_id)
        return await services.database.transaction(
            get_or_create_email_secret, command_line_actor(), services.keyring, app_id
        )

    click.echo(f"email-secret of application {app_id}: {with_services(ctx, work)}")


@command.group()
def key() -> None:
    """Manage the public keys that verify service JWTs of an application.

    These keys are added to the one in service_meta.public_key and the file keys/APP_ID.pem in the data directory.

    \b
    Example:
      sso app key add 40 tanks.pem
      sso app key list 40
    """


@key.command("add")
@APP_ID
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def add_key(ctx: click.Context, app_id: int, file: Path) -> None:
    """Trust the public key in FILE (PEM; RSA, EC P-256 or Ed25519) and print its kid.

    \b
    Example:
      sso app key add 40 tanks.pem
    """
    try:
        pem = file.read_text()
        material.load_public(pem)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(f"cannot read {file}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except UnusableKey as error:
        raise CommandFailure(f"{file}: {error}") from None

    async def work(services: CommandServices) -> str:
        async def add(tx: Transaction) -> str:
            row = await require_application(tx, app_id)
            kid = await add_custom_key(tx, app_id, pem)
            await _audit_key_change(tx, "application.key.add", row, None, kid)
            return kid

        return await services.database.transaction(add)

    click.echo(f"kid {with_services(ctx, work)}")


@key.command("list")
@APP_ID
@list_options
@click.pass_context
def list_keys(ctx: click.Context, app_id: int, form: Format | None) -> None:
    """List the trusted keys: kid and algorithm.

    \b
    Example:
      sso app key list 40
    """

    async def work(services: CommandServices) -> list[dict[str, str]]:
        await require_application(services.database, app_id)
        return await services.complete.permissions.application_keys.published(app_id)

    keys = with_services(ctx, work)
    algorithms = [material.algorithm_of(material.load_public(item["data"])) for item in keys]
    print_list(form, [{"kid": item["id"], "algorithm": name} for item, name in zip(keys, algorithms, strict=True)])


@key.command("remove")
@APP_ID
@click.argument("kid")
@click.pass_context
def remove_key(ctx: click.Context, app_id: int, kid: str) -> None:
    """Stop trusting a key that was added with `sso app key add`, or that was in a file of a node which is gone.

    \b
    Example:
      sso app key remove 40 CDIhyVCKpfIXkNJRQRRpow
    """

    async def work(services: CommandServices) -> bool:
        async def remove(tx: Transaction) -> bool:
            row = await require_application(tx, app_id)
            removed = await delete_custom_key(tx, app_id, kid)
            if removed:
                await _audit_key_change(tx, "application.key.remove", row, kid, None)
            return removed

        return await services.database.transaction(remove)

    if not with_services(ctx, work):
        raise CommandFailure(f"application {app_id} has no key {kid} that was added with `sso app key add`")
    click.echo(f"{kid} is removed")


def _stored_private_key(keyring: Keyring, row: Row) -> str:
    pem = private_key(keyring, row)
    if not pem:
        raise CommandFailure(
            "the service holds no private key of this application: store it in service_meta.private_key"
        )
    try:
        material.load_private(pem)
    except UnusableKey as error:
        raise CommandFailure(f"the private key of this application cannot be used: {error}") from None
    return pem


async def _audit_key_change(tx: Transaction, operation: str, row: Row, old: str | None, new: str | None) -> None:
    names = {"project_id": row["project_id"], "application_id": row["application_id"]}
    before, after = {"kid": old} if old else None, {"kid": new} if new else None
    await audit.write(
        tx, command_line_actor(), operation, f"{row['application_id']}/{new or old}", before, after, **names
    )
