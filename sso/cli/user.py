"""sso user …"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from sso.cli import user_data, user_links
from sso.cli.ban import ban, bans, unban
from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.impersonation import impersonate
from sso.cli.invitation import invitations, invite
from sso.cli.new_password import read_password
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list, print_record, record_options
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


ID_OR_LOGIN = click.argument("id_or_login", callback=utf8_argument)
MAX_LISTED_USERS = 1_000_000
_OPTIONS = {
    r"(users\[0\]\.)?login": "LOGIN",
    r"users\[0\]\.user_id": "--user-id",
    r"permissions\[0\]\.data\.roles": "--admin",
}


@click.group(cls=Subcommands)
def command() -> None:
    """Manage users, their passwords and second factors. ID_OR_LOGIN is a user id or an e-mail address.

    \b
    Example:
      sso user add ann@example.com --verified
      sso user show ann@example.com
    """


@command.command()
@click.argument("login")
@click.option("--nick", default="", help="Nickname (default: the part of the login before the @).")
@click.option("--user-id", help="User id, a decimal number (default: generated).")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--verified", is_flag=True, help="Mark the e-mail address as verified.")
@click.option("--admin", is_flag=True, help="Make the user an administrator: assign the role root.")
@click.pass_context
def add(
    ctx: click.Context,
    login: str,
    nick: str,
    user_id: str | None,
    password_stdin: bool,
    verified: bool,
    admin: bool,
) -> None:
    """Add a user with the e-mail address LOGIN and print the user id.

    The password is read from the terminal, where it must be hard to guess, or with --password-stdin from standard
    input. Otherwise a random one is generated and printed. A missing data directory is created.

    \b
    Example:
      sso user add ann@example.com --admin
    """
    password, generated = read_password(password_stdin, login, nick)
    fields = {"login": login, "nick": nick or login.split("@")[0], "password": password, "email_verified": verified}
    fields |= {"user_id": user_id} if user_id else {}
    with option_errors(_OPTIONS):
        _check(fields)
        added = with_records(ctx, lambda records: records.users.add(fields, admin=admin), may_create=True)
    if generated:
        echo(f"password {password}")
    echo(f"user_id {added}")


@command.command("list")
@click.option(
    "--search",
    default="",
    callback=utf8_argument,
    help="Only users whose login or nickname contains this text, or whose user id it is.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0, MAX_LISTED_USERS),
    default=100,
    show_default=True,
    help="Maximum number of users.",
)
@click.option(
    "--offset", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="Number of users to skip."
)
@list_options
@click.pass_context
def list_users(ctx: click.Context, search: str, limit: int, offset: int, form: Format | None) -> None:
    """List the users: id, login, nickname, and flags (disabled, deleted, banned, second factors).

    \b
    Example:
      sso user list --search example.com --json
    """

    users = with_records(ctx, lambda records: records.users.list(search, limit, offset))
    print_list(form, users)


@command.command()
@ID_OR_LOGIN
@record_options
@click.pass_context
def show(ctx: click.Context, id_or_login: str, form: Format | None) -> None:
    """Show a user.

    \b
    Example:
      sso user show ann@example.com
    """
    print_record(form, with_records(ctx, lambda records: records.users.find(id_or_login)))


@command.command()
@ID_OR_LOGIN
@click.pass_context
def disable(ctx: click.Context, id_or_login: str) -> None:
    """Disable a user. All sessions and tokens end at once.

    \b
    Example:
      sso user disable ann@example.com
    """
    user = _set_disabled(ctx, id_or_login, disabled=True)
    echo(f"{user['login']} is disabled")


@command.command()
@ID_OR_LOGIN
@click.pass_context
def enable(ctx: click.Context, id_or_login: str) -> None:
    """Allow a disabled user to sign in again.

    \b
    Example:
      sso user enable ann@example.com
    """
    user = _set_disabled(ctx, id_or_login, disabled=False)
    echo(f"{user['login']} is enabled")


@command.command("set-password")
@ID_OR_LOGIN
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_context
def set_password(ctx: click.Context, id_or_login: str, password_stdin: bool) -> None:
    """Set a new password. All sessions and tokens end at once, and the user gets a mail.

    The password is read from the terminal, where it must be hard to guess, or with --password-stdin from standard
    input. Otherwise a random one is generated and printed.

    \b
    Example:
      sso user set-password ann@example.com
    """
    password, generated = read_password(password_stdin, id_or_login)

    user = _with_user(ctx, id_or_login, lambda records, user: records.users.set_password(user, password))
    if generated:
        echo(f"password {password}")
    echo(f"the password of {user['login']} is set")


@command.command("reset-2fa")
@ID_OR_LOGIN
@click.pass_context
def reset_2fa(ctx: click.Context, id_or_login: str) -> None:
    """Remove all second factors of a user who lost them. All sessions and tokens end, and the user gets a mail.

    \b
    Example:
      sso user reset-2fa ann@example.com
    """
    user = _with_user(ctx, id_or_login, lambda records, user: records.users.reset_factors(user))
    echo(f"{user['login']} signs in with the password alone")


@command.command("unblock-2fa")
@ID_OR_LOGIN
@click.pass_context
def unblock_2fa(ctx: click.Context, id_or_login: str) -> None:
    """Accept codes again after the second factors were blocked by 20 wrong codes in a row.

    \b
    Example:
      sso user unblock-2fa ann@example.com
    """
    user = _with_user(ctx, id_or_login, lambda records, user: records.users.unblock_factors(user))
    echo(f"codes of {user['login']} are accepted again")


@command.command("end-sessions")
@ID_OR_LOGIN
@click.pass_context
def end_sessions(ctx: click.Context, id_or_login: str) -> None:
    """End all sessions and tokens of a user at once. The password stays valid.

    \b
    Example:
      sso user end-sessions ann@example.com
    """
    user = _with_user(ctx, id_or_login, lambda records, user: records.users.end_sessions(user))
    echo(f"{user['login']} is signed out everywhere")


MORE = (ban, unban, bans, invite, invitations, impersonate)
for other in (*user_links.COMMANDS, user_data.delete, user_data.restore, user_data.export, *MORE):
    command.add_command(other)


def _check(fields: Fields) -> None:
    """Checks a new user before anything is created. Raises FieldError."""
    from sso.accounts.user_record import UserRecord
    from sso.web.body import ParsedBody
    from sso.web.request_model import validate

    validate(UserRecord, ParsedBody(fields))


def _set_disabled(ctx: click.Context, id_or_login: str, *, disabled: bool) -> Fields:
    def change(records: "ServiceRecords", user: Fields) -> Awaitable[None]:
        if user.get("deletion_due") and not disabled:
            raise CommandFailure(f"{user['login']} is going to be deleted: use `sso user restore`")
        return records.users.set_disabled(user, disabled=disabled)

    return _with_user(ctx, id_or_login, change)


def _with_user(
    ctx: click.Context, id_or_login: str, action: "Callable[[ServiceRecords, Fields], Awaitable[None]]"
) -> Fields:
    async def work(records: "ServiceRecords") -> Fields:
        user = await records.users.find(id_or_login)
        await action(records, user)
        return user

    return with_records(ctx, work)
