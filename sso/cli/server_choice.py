"""The server that a command is for: the option ``--server``, or the variable SSO_SERVER."""

import click

KEY = "sso.server"


def chosen_server(ctx: click.Context) -> str | None:
    """Returns the URL of the server, or None for the database of this machine."""
    server: str | None = ctx.find_root().meta.get(KEY)
    return server


def refuse_server(ctx: click.Context) -> None:
    """Raises UsageError if a server was chosen, for commands that need the machine of the service."""
    if server := chosen_server(ctx):
        raise click.UsageError(
            f"`{ctx.command_path}` works only on the machine of the service: leave out --server and SSO_SERVER "
            f"({server})"
        )
