"""sso export"""

import click

from sso.cli.echo import echo_json
from sso.cli.records import with_records


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the current state as a document for `sso apply`.

    Passwords, client secrets, second-factor secrets, private keys, access keys and removed records are left out.

    \b
    Example:
      sso export > state.json
    """

    document = with_records(ctx, lambda records: records.state.export(), in_process=True)
    echo_json(document, indent=True)
