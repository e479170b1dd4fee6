"""sso export"""

import click
import orjson

from sso.cli.context import with_services
from sso.cli.services import CommandServices
from sso.state.export import export


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the current state as a document for `sso apply`.

    Passwords, client secrets, second-factor secrets, private keys, access keys and removed records are left out.

    \b
    Example:
      sso export > state.json
    """

    async def read(services: CommandServices) -> bytes:
        return orjson.dumps(await export(services.database), option=orjson.OPT_INDENT_2)

    click.echo(with_services(ctx, read))
