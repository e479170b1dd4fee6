"""All commands of the program."""

from collections.abc import Iterator

import click

import sso.cli


def walk(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            subcommand = command.get_command(ctx, name)
            assert subcommand is not None
            yield from walk(subcommand, *path, name)


COMMANDS = dict(walk(sso.cli.program))
