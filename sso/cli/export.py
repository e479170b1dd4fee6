"""sso export, and sso export users"""

import os
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click

from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure, LocalServices, command_line_account, run_with_services, settings_of
from sso.cli.echo import echo, echo_json
from sso.cli.progress import Progress
from sso.cli.records import with_records


@click.group(cls=Subcommands, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the current state as a document for `sso apply`.

    Passwords, client secrets, second-factor secrets, private keys, access keys and removed records are left out.
    `sso export users` writes all users to a file, for moving to another service.

    \b
    Example:
      sso export > state.json
    """
    if ctx.invoked_subcommand is None:
        echo_json(with_records(ctx, lambda records: records.state.export(), in_process=True), indent=True)


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-hashes", is_flag=True, help="Also write password hashes and the secrets of authenticator apps.")
@click.pass_context
def users(ctx: click.Context, file: Path, with_hashes: bool) -> None:
    """Write all users to FILE, one JSON object per line, as `sso import users --from jsonl` reads them.

    FILE must not exist. Only the account that runs the command may read it. Guests, accounts that are going to be
    erased and roles of the service itself are left out. The export is in the audit trail.

    \b
    Example:
      sso export users users.jsonl
      sso export users users.jsonl --with-hashes
    """

    async def work(local: LocalServices) -> int:
        with Progress(f"writing {file}") as progress:
            return await _write(local, file, output, progress, with_hashes=with_hashes)

    with _created(file) as output:
        count = run_with_services(settings_of(ctx), work)
    echo(f"{count:,} users are in {file}")


async def _write(local: LocalServices, file: Path, output: BinaryIO, progress: Progress, *, with_hashes: bool) -> int:
    import orjson

    from sso.audit.trail import AuditActor
    from sso.state.user_export import export_users

    actor, count = AuditActor(operator=command_line_account()), 0
    async with aclosing(export_users(local.database, local.keyring, actor, secrets=with_hashes)) as records:
        async for record in records:
            with _write_failures(file):
                output.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
            progress.show(f"{count:,} users")
    return count


@contextmanager
def _created(file: Path) -> Iterator[BinaryIO]:
    """Creates the file with the rights of the caller, before the command switches to the account of the service.

    An export that fails leaves no file behind.
    """
    output = _create(file)
    try:
        yield output
        with _write_failures(file):
            output.close()  # this writes what is left
    except BaseException:
        with suppress(OSError):
            file.unlink()
        with suppress(OSError):
            output.close()
        raise


def _create(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except FileExistsError:
        raise CommandFailure(f"{file} exists already; choose another name") from None
    except OSError as error:
        raise _cannot_write(file, error) from None


@contextmanager
def _write_failures(file: Path) -> Iterator[None]:
    """Raises CommandFailure for an error of the file, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(file, error) from None


def _cannot_write(file: Path, error: OSError) -> CommandFailure:
    return CommandFailure(f"cannot write {file}: {error.strerror}")
