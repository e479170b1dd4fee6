"""sso login"""

import sys

import click

from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.server_choice import chosen_server
from sso.cli.standard_input import read_line
from sso.core.printable import printable
from sso.core.urls import split_url

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@click.command()
@click.argument("email", required=False)
@click.option("--login", "login_name", metavar="EMAIL", help="The same as the argument EMAIL.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--otp", metavar="CODE", help="Code of the second factor (default: asked for if it is needed).")
@click.option("--browser", is_flag=True, help="Sign in with a browser on this machine, also with a passkey.")
@click.option(
    "--client-id",
    help="Sign in as a service client, whose secret is asked for. With --browser: the public client of this program "
    "(default: sso-cli).",
)
@click.option("--secret-stdin", is_flag=True, help="Read the secret of the service client from standard input.")
@click.pass_context
def command(
    ctx: click.Context,
    email: str | None,
    login_name: str | None,
    password_stdin: bool,
    otp: str | None,
    browser: bool,
    client_id: str | None,
    secret_stdin: bool,
) -> None:
    """Sign in to the server that --server names, for commands on it.

    EMAIL is the address of the account. It and the password are asked for; if standard input is no terminal, they are
    its first lines.

    Then `sso --server URL user list` and others run on that server, with the rights of the account. Tokens are stored
    in a file that only you can read, in the folder sso of your configuration; no password is stored.

    \b
    Example:
      sso --server https://sso.example.com login
      sso --server https://sso.example.com login --browser
      sso --server https://sso.example.com login --client-id management
      sso --server last user list
    """
    from sso.cli.logins import Logins, browser_login
    from sso.client import ClientError

    logins = Logins()
    url = logins.url(_require_server(ctx))
    check_url(url)
    try:
        if browser:
            from sso.cli.browser_login import CLIENT_ID, sign_in_with_browser

            login = browser_login(sign_in_with_browser(url, client_id or CLIENT_ID))
        elif client_id:
            login = _sign_in_client(url, client_id, _read_secret("Client secret", secret_stdin))
        else:
            login = _sign_in_user(url, login_name or email, password_stdin, otp)
    except ClientError as error:
        raise CommandFailure(printable(f"{url}: {error}")) from None
    with logins.locked():
        logins.add(url, login)
    echo(f"signed in to {url}")


def _require_server(ctx: click.Context) -> str:
    server = chosen_server(ctx)
    if server is None:
        raise click.UsageError("expected the server: sso --server https://sso.example.com login")
    return server


def check_url(url: str) -> None:
    """Raises UsageError for a URL to which a password must not be sent."""
    parts = split_url(url)
    if parts is None or parts.scheme not in ("https", "http") or not parts.hostname or parts.path or parts.query:
        raise click.UsageError("--server: expected an address such as https://sso.example.com")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise click.UsageError("--server: expected https, except for this machine")


def _sign_in_user(url: str, login_name: str | None, password_stdin: bool, otp: str | None) -> dict[str, object]:
    from sso.cli.logins import session_login
    from sso.client import SsoClient, UserLogin

    if login_name is None:
        login_name = str(click.prompt("E-mail", err=True)) if sys.stdin.isatty() else _read_line("e-mail")
    password = _read_secret("Password", password_stdin)
    user = UserLogin(login_name, password, otp or _ask_code)
    with SsoClient(url) as api:
        return session_login(api.run(user.sign_in()), login_name)


def _sign_in_client(url: str, client_id: str, secret: str) -> dict[str, object]:
    from sso.cli.logins import client_login
    from sso.client import ApiCall, SsoClient
    from sso.client.call import read_body

    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    with SsoClient(url) as api:
        answer = api.send(ApiCall("POST", "/proxy/oauth/token", read_body, form=form, authenticated=False))
    return client_login(client_id, answer["access_token"], answer["expires_in"])


def _ask_code(factors: list[str]) -> str:
    if not sys.stdin.isatty():
        raise CommandFailure(f"expected --otp: a code of the second factor ({', '.join(map(str, factors))})")
    return str(click.prompt(printable(f"Code ({', '.join(map(str, factors))})"), err=True))


def _read_line(name: str) -> str:
    line = read_line(name)
    if not line:
        raise CommandFailure(f"{name}: expected on standard input")
    return line


def _read_secret(name: str, from_stdin: bool) -> str:
    """Returns a password or secret. It is never an argument, which other users of the machine could see."""
    if from_stdin or not sys.stdin.isatty():
        return _read_line(name.lower())
    return str(click.prompt(name, hide_input=True, err=True))
