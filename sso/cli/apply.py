"""sso apply"""

import sys
from pathlib import Path

import click

from sso.cli.administration import AppliedState, ServiceAdministration
from sso.cli.backend import with_administration
from sso.cli.context import CommandFailure
from sso.cli.progress import Progress
from sso.state.document import DocumentError, parse
from sso.web.body import InvalidBody, parse_body

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.pass_context
def command(ctx: click.Context, file: Path) -> None:
    """Apply FILE (or - for standard input), a JSON document of desired state.

    The document is applied as a whole or not at all. Records and fields that it does not name stay as they are, and
    applying it again changes nothing. The service may be running; it uses the new state at once.

    \b
    Example:
      echo '{"users": [{"login": "ann@example.com", "nick": "Ann"}]}' | sso apply -
    """
    try:
        raw = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1) if str(file) == "-" else file.read_bytes()
        document = parse_body(
            raw, "application/json", max_bytes=MAX_DOCUMENT_BYTES, max_values=MAX_DOCUMENT_BYTES
        ).fields
        parse(document)
    except OSError as error:
        raise CommandFailure(f"cannot read {file}: {error.strerror}") from None
    except (InvalidBody, DocumentError) as error:
        raise CommandFailure(f"{file}: {error}") from None

    async def apply(admin: ServiceAdministration) -> AppliedState:
        try:
            with Progress(f"applying {'standard input' if str(file) == '-' else file}") as progress:
                return await admin.state.apply(
                    document, lambda what, done, total: progress.show(f"{what}, {done:,} of {total:,}")
                )
        except DocumentError as error:
            raise CommandFailure(f"{file}: {error}") from None

    applied = with_administration(ctx, apply, may_create=True)
    for warning in applied.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"created {applied.created}, changed {applied.changed}, unchanged {applied.unchanged}")
