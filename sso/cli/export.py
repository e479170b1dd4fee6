"""sso export"""

import click

from sso.cli.backend import with_administration
from sso.cli.echo import echo_json


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the current state as a document for `sso apply`.

    Passwords, client secrets, second-factor secrets, private keys, access keys and removed records are left out.

    \b
    Example:
      sso export > state.json
    """

    document = with_administration(ctx, lambda admin: admin.state.export())
    echo_json(document, indent=True)
