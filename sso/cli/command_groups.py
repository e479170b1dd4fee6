"""Groups of commands: their help shows the first sentence of each command, wrapped instead of cut off."""

import importlib
import keyword
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_SENTENCE = 500


class Subcommands(click.Group):
    group_class = type  # groups in it are of the same class

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in sorted(self.commands.items())]
            )


class ImportedCommands(click.Group):
    """Commands of other modules. A module is imported when its command is used, so that `sso --help` is fast."""

    def __init__(self, summaries: Mapping[str, str], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        module = f"{cmd_name}_command" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command: click.Command = importlib.import_module(f"sso.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Completes names without importing the commands."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.summaries if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.summaries[name]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]
