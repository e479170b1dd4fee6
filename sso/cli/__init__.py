"""The program ``sso``: one module for each command.

The exit code is 0 on success, 1 after a failure (one line on standard error) and 2 on wrong usage.
"""

import errno
import gc
import io
import sys
from pathlib import Path

import click

from sso import __version__
from sso.cli.command_groups import ImportedCommands
from sso.cli.echo import echo
from sso.cli.server_choice import KEY
from sso.core.errors import ApiError, OperatorError
from sso.core.omitted_modules import omit_modules
from sso.environment import SERVER

COMMANDS = {
    "serve": "Start the service.",
    "play": "Log in as a game does, to try the service out.",
    "apply": "Apply a JSON document of desired state.",
    "state": "Print the JSON schema of documents of desired state.",
    "export": "Print the current state as such a document, without secrets, or write all users to a file.",
    "import": "Import users of another service, with their password hashes.",
    "backup": "Write the database and the keys to a file.",
    "restore": "Restore a backup into an empty database.",
    "migrate": "Upgrade the database schema to this version of the program.",
    "upgrade-db": "Upgrade the embedded database to a new major version of PostgreSQL.",
    "login": "Sign in to the server that --server names, for commands on it.",
    "logout": "Forget the sign-in to a server.",
    "user": "Manage users, their passwords and second factors.",
    "client": "Manage OAuth clients (web sites that use this login) and their secrets.",
    "idp": "Manage identity providers: other services with which players can sign in.",
    "app": "Manage applications: keys, service JWTs, e-mail secrets.",
    "project": "Manage projects and their members.",
    "role": "Manage roles and assign them to users.",
    "group": "Manage groups of users in projects, and the roles of a group.",
    "perm": "Show and explain permissions of a user.",
    "replica": "Answer permission checks of one application from memory, next to a game server.",
    "webhook": "Manage webhooks: addresses that changes are sent to.",
    "trigger": "Send examples of events to a receiver of webhooks or signals.",
    "audit": "Show who changed what in the permission model.",
    "why": "Show why a request about a game session was refused.",
    "key": "Manage the signing keys and the master key.",
    "status": "List the nodes of this database and their load.",
    "doctor": "Check the installation and recommend fixes.",
    "config": "Print an example of a settings file.",
    "completion": "Print a script for completion with the Tab key (bash, zsh, fish).",
}


@click.group(cls=ImportedCommands, summaries=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sso")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help='TOML file with settings, named like the environment variables: SSO_BIND = "0.0.0.0:8000" (default: the '
    "file that SSO_CONFIG names).",
)
@click.option(
    "--server",
    metavar="URL",
    envvar=SERVER,
    help="Run the command on this server, over its management API, instead of on the database of this machine. Sign in "
    "with `sso --server URL login` first; `last` is the server of the last login (default: the variable SSO_SERVER).",
)
@click.pass_context
def program(ctx: click.Context, config_file: Path | None, server: str | None) -> None:
    """Single sign-on and permissions server.

    Settings are environment variables SSO_*, or entries of a TOML file. With the defaults, `sso serve` listens on
    http://127.0.0.1:8000 and stores all data, including an embedded PostgreSQL, in the directory "var".

    \b
    Example:
      sso serve
      sso user add ann@example.com --admin
      sso client add shop --profile oidc --host shop.example.com
      sso --server https://sso.example.com login
      sso --server https://sso.example.com user list
    """
    ctx.obj = config_file
    ctx.meta[KEY] = server or None


def main() -> None:
    gc.disable()  # garbage collection slows the imports down; long-running processes enable it again
    omit_modules()
    try:
        sys.exit(program.main(prog_name="sso", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        fail("interrupted")
    except click.UsageError as error:
        text = io.StringIO()
        error.show(text)
        echo(text.getvalue(), err=True, nl=False)
        sys.exit(2)
    except click.ClickException as error:
        fail(error.format_message())
    except (OperatorError, ApiError) as error:
        fail(str(error) or type(error).__name__)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        fail(": ".join(str(part) for part in (error.filename, error.strerror) if part))


def fail(message: str) -> None:
    echo(f"sso: {message}", err=True)
    sys.exit(1)
