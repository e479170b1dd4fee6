"""sso app …"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.records import with_records
from sso.cli.records.types import Fields, Records
from sso.cli.types import APPLICATION_ID

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


APP_ID = click.argument("app_id", type=APPLICATION_ID)


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

    async def work(records: "ServiceRecords") -> Records:
        return await records.applications.list((await records.projects.find(project))["id"] if project else None)

    def line(record: Record) -> list[object]:
        marks = ["removed"] if record["removed"] else []
        return [record["application_id"], record["name"], record["project_id"] or "-", *marks]

    print_list(form, with_records(ctx, work), line)


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
    print_record(form, with_records(ctx, lambda records: records.applications.get(app_id)))


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

    async def work(records: "ServiceRecords") -> int:
        from sso.perm.input.application import read_application_fields

        project_id = (await records.projects.find(project))["id"] if project else None
        record: Fields = {"name": name, "description": description, "project_id": project_id}
        return await records.applications.add(read_application_fields(record)[0])

    with option_errors({"name": "NAME", "description": "--description"}, f"project {project}"):
        echo(f"application_id {with_records(ctx, work)}")


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
    echo(with_records(ctx, lambda records: records.applications.service_jwt(app_id)))


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
    secret = with_records(ctx, lambda records: records.applications.email_secret(app_id))
    echo(f"email-secret of application {app_id}: {secret}")


@command.command("data-secret")
@APP_ID
@click.pass_context
def print_data_secret(ctx: click.Context, app_id: int) -> None:
    """Print the secret that signs requests about personal data to an application; create it if there is none.

    The application verifies with it that a request to an address of settings.gdpr comes from this service.

    \b
    Example:
      sso app data-secret 40
    """
    secret = with_records(ctx, lambda records: records.applications.data_secret(app_id))
    echo(f"data-secret of application {app_id}: {secret}")


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
    from sso.core.keys import UnusableKey, load_public

    try:
        pem = file.read_text()
        load_public(pem)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(f"cannot read {file}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    except UnusableKey as error:
        raise CommandFailure(f"{file}: {error}") from None
    echo(f"kid {with_records(ctx, lambda records: records.applications.add_public_key(app_id, pem))}")


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
    print_list(form, with_records(ctx, lambda records: records.applications.public_keys(app_id)))


@key.command("delete")
@APP_ID
@click.argument("kid")
@click.pass_context
def delete_key(ctx: click.Context, app_id: int, kid: str) -> None:
    """Stop trusting a key that was added with `sso app key add`, or that was in a file of a node which is gone.

    \b
    Example:
      sso app key delete 40 CDIhyVCKpfIXkNJRQRRpow
    """
    if not with_records(ctx, lambda records: records.applications.delete_public_key(app_id, kid)):
        raise CommandFailure(f"application {app_id} has no key {kid} that was added with `sso app key add`")
    echo(f"{kid} is deleted")
