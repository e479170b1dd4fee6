"""The program ``sso``: verbs, one file each.

Exit code 0 on success, 1 on a failure said in one line, 2 on wrong usage.
"""

import gc
import importlib
import sys
from pathlib import Path

import click

from sso import __version__

VERBS = {
    "serve": "Start the service.",
    "play": "Sign in as a game does, to try it out.",
    "apply": "Load a JSON document of desired state.",
    "export": "Write the present state as such a document, without secrets.",
    "backup": "Write the database and the keys to a file.",
    "restore": "Restore a backup into an empty database.",
    "migrate": "Bring the database up to this program's version.",
    "user": "Add, show, disable users; passwords and second factors.",
    "client": "Add, show, disable web sites that sign their users in here; their secrets.",
    "app": "Applications: their keys, service JWTs and e-mail secrets.",
    "project": "Projects and who is in them.",
    "perm": "What a user may do and why; give and take roles.",
    "audit": "Who changed what in the permission model.",
    "why": "Why a request about a game session was refused.",
    "key": "Signing keys and the master key.",
    "doctor": "Check the installation and say what to do.",
}


class CommandGroup(click.Group):
    """Loads a verb when it is used: `sso --help` should not wait for a web framework."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"sso.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("CommandGroup"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sso")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help='TOML file of settings, named as the environment variables are: SSO_BIND = "0.0.0.0:8000".',
)
@click.pass_context
def program(ctx: click.Context, config_file: Path | None) -> None:
    """Single sign-on and permissions server.

    Settings come from environment variables SSO_* or from the file given with --config; without any, `sso serve`
    listens on http://127.0.0.1:8000 and keeps everything, its own PostgreSQL included, in the directory "var".
    """
    ctx.obj = config_file


def main() -> None:
    gc.disable()  # it only slows imports down; a process that lives switches it on again
    try:
        sys.exit(program.main(prog_name="sso", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        fail("interrupted")
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        fail(error.format_message())
    except Exception as error:
        from sso.cli.context import FAILURES

        if not isinstance(error, FAILURES):
            raise
        fail(str(error) or type(error).__name__)


def fail(message: str) -> None:
    click.echo(f"sso: {message}", err=True)
    sys.exit(1)
