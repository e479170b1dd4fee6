"""sso export"""

import click
import orjson

from sso.cli.context import with_services
from sso.services import Services
from sso.state.export import export


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Write the present state to standard output, as a document that `sso apply` reads.

    Passwords, client secrets, second-factor secrets, private keys and access keys are not in it, nor is anything that
    was removed.
    """

    async def read(services: Services) -> bytes:
        return orjson.dumps(await export(services.database), option=orjson.OPT_INDENT_2)

    click.echo(with_services(ctx, read))
