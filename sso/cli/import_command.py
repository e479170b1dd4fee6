"""sso import …"""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.import_realm import realm
from sso.cli.progress import Progress
from sso.cli.records import with_records
from sso.cli.user_files.files import open_text, private_file

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords
    from sso.cli.user_files.import_run import ImportReport
    from sso.cli.user_files.mapping import NameMapping
    from sso.cli.user_files.model import Entries

LARGE_FILE = 256 * 1024  # importing it would keep a worker of the service busy
MAX_REASONS, MAX_NAMES = 20, 20
SOURCES = ("keycloak", "auth0", "firebase", "csv", "jsonl")


@click.group(cls=Subcommands)
def command() -> None:
    """Import users of another service, and the clients, roles and groups of Keycloak.

    \b
    Example:
      sso import users realm.json --from keycloak --dry-run
      sso import realm realm.json --application-id 10 --dry-run
    """


command.add_command(realm)


@command.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--from", "source", type=click.Choice(SOURCES), required=True, help="What has written the file.")
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be done.")
@click.option("--update", is_flag=True, help="Also change users who exist, and give verified ones a missing password.")
@click.option("--passwords", is_flag=True, help="With --update: replace the passwords of users who exist, too.")
@click.option(
    "--map", "mapping", type=click.Path(path_type=Path), help="JSON file: roles and groups become roles or tags."
)
@click.option("--hash-config", type=click.Path(path_type=Path), help="File with the hash parameters of Firebase.")
@click.option(
    "--report", "report_file", type=click.Path(path_type=Path), help="Write a line of JSON for each user there."
)
@click.option("--override", is_flag=True, help="Import the users even if assertions of applications fail.")
@click.pass_context
def users(
    ctx: click.Context,
    file: Path,
    source: str,
    dry_run: bool,
    update: bool,
    passwords: bool,
    mapping: Path | None,
    hash_config: Path | None,
    report_file: Path | None,
    override: bool,
) -> None:
    """Import the users of FILE (or - for standard input) with their password hashes.

    Users sign in with the password that they have; its hash is replaced at the first sign-in. Users who exist are
    skipped, so the command can be run again after it was interrupted. The file is read piece by piece.

    \b
    Example:
      sso import users realm.json --from keycloak --dry-run
      sso import users users.json --from firebase --hash-config hash.txt --report report.jsonl
    """
    if passwords and not update:
        raise click.UsageError("--passwords needs --update")
    from sso.cli.user_files.import_run import ImportRun
    from sso.cli.user_files.mapping import read_mapping

    names, read = read_mapping(mapping), _reader(source, hash_config)

    async def work(records: "ServiceRecords") -> "ImportReport":
        run = ImportRun(
            source,
            names,
            lambda batch: records.users.import_batch(
                batch, dry_run=dry_run, update=update, passwords=passwords, override=override
            ),
            log,
        )
        with Progress(f"importing {text.name}") as progress:
            return await run.run(read(text), lambda done: progress.show(f"{done:,} users"))

    with open_text(file) as text, private_file(report_file) if report_file else nullcontext() as log:
        try:
            report = with_records(ctx, work, in_process=_is_large(file))
        except UnicodeDecodeError:
            raise CommandFailure(f"{text.name}: expected UTF-8") from None
    _print(report, names, dry_run=dry_run)


def _reader(source: str, hash_config: Path | None) -> "Callable[[TextIO], Entries]":
    from sso.cli.user_files import auth0, firebase, keycloak, tables

    if hash_config and source != "firebase":
        raise click.UsageError("--hash-config is for --from firebase")
    if source == "firebase":
        parameters = firebase.read_hash_parameters(hash_config) if hash_config else None
        return lambda text: firebase.read_firebase(text, parameters)
    readers = {
        "keycloak": keycloak.read_keycloak,
        "auth0": auth0.read_auth0,
        "csv": tables.read_csv,
        "jsonl": tables.read_json_lines,
    }
    return readers[source]


def _is_large(file: Path) -> bool:
    return str(file) == "-" or file.stat().st_size > LARGE_FILE


def _print(report: "ImportReport", names: "NameMapping", *, dry_run: bool) -> None:
    counts = ", ".join(f"{outcome} {count:,}" for outcome, count in report.counts.items())
    echo(f"{'would be: ' if dry_run else ''}{counts}")
    lines = report.lines()
    for line in lines[:MAX_REASONS]:
        echo(line)
    if len(lines) > MAX_REASONS:
        echo(f"and {len(lines) - MAX_REASONS:,} other reasons: see --report")
    if names.unknown:
        common = ", ".join(f"{name} ({count:,})" for name, count in names.unknown.most_common(MAX_NAMES))
        echo(f"not in the mapping: {common}")
