"""sso export"""

import click
import orjson

from sso.cli.running import with_services
from sso.services import Services
from sso.state.export import export


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Write the present state to standard output, as a document that `sso apply` reads.

    Passwords, client secrets and second-factor secrets are not in it.
    """

    async def read(services: Services) -> bytes:
        return orjson.dumps(await export(services.database), option=orjson.OPT_INDENT_2)

    click.echo(with_services(ctx, read))
