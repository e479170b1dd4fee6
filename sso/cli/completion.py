"""sso completion"""

import click
from click.shell_completion import get_completion_class

from sso.cli.echo import echo

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SSO_COMPLETE"  # the script calls `sso` with it to get the completions


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that lets SHELL complete commands and options with the Tab key.

    \b
    bash  add to ~/.bashrc:  eval "$(sso completion bash)"
    zsh   add to ~/.zshrc:   eval "$(sso completion zsh)"
    fish  run once:          sso completion fish > ~/.config/fish/completions/sso.fish

    \b
    Example:
      eval "$(sso completion bash)"
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    echo(shell_class(ctx.find_root().command, {}, "sso", VARIABLE).source())
