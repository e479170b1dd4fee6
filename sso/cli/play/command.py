"""sso play"""

import gc
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import click
import trio

from sso.cli.play.client import GameLoginError
from sso.cli.play.guest_key import GuestKey
from sso.cli.play.login import GameLoginOptions, Interrupted, log_in, log_in_guest
from sso.cli.play.screen import Screen, print_json, print_line
from sso.cli.play.signing import BadKey, SigningKey


def _address(value: str, *schemes: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or not value.isascii() or not value.isprintable() or " " in value:
        raise click.BadParameter(f"expected an address such as {schemes[0]}://127.0.0.1:8000")
    return value.rstrip("/")


def _base_url(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    return _address(value, "http", "https")


def _ws_url(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    return value and _address(value, "ws", "wss")


def serve_script(base_url: str, file: Path) -> None:
    """Answers games until Ctrl-C is pressed, and prints each request."""
    from sso.cli.play.scripted.script import BadScript, read_script
    from sso.cli.play.scripted.service import ScriptedService

    try:
        service = ScriptedService(read_script(file), print_line)
        address = urlsplit(base_url)
        print_line(f"Playing {file} at {base_url} (Ctrl-C to leave)")
        gc.enable()  # it runs for long
        trio.run(service.serve, address.port or 80, address.hostname or "")
    except BadScript as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{base_url}: {error}") from None
    except KeyboardInterrupt:
        return


@click.command()
@click.argument("base_url", metavar="BASE_URL", callback=_base_url)
@click.option("--factor", default="", help="Device factor; without it the result has no JWT.")
@click.option("--distr", default="", help="Distributor tag.")
@click.option("--app-id", metavar="ID", type=click.IntRange(0), default=0, help="Application id (app_id).")
@click.option("--gapp-id", metavar="ID", type=click.IntRange(0), default=0, help="Game application id (gapp_id).")
@click.option("--key", "key_file", type=click.Path(path_type=Path), help="RSA private key (PEM) to sign requests with.")
@click.option(
    "--guest",
    "guest_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Sign in as a guest, without a browser. FILE keeps the key of the device; it is created if it is missing.",
)
@click.option("--link", is_flag=True, help="With --guest: sign in with a browser, and keep what the guest has.")
@click.option("--no-socket", is_flag=True, help="Only poll; open no WebSocket, so that no stages are shown.")
@click.option("--ws-url", default="", callback=_ws_url, help="WebSocket address (default: BASE_URL with ws).")
@click.option("--open", "open_browser", is_flag=True, help="Open the link in the browser of this machine.")
@click.option("--qr", is_flag=True, help="Print the QR code even if the output is not a terminal.")
@click.option(
    "--scripted",
    "script_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Instead: be the service at BASE_URL and answer a game as this file says, for tests in an editor.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the response of the service unchanged, including secrets.")
@click.pass_context
def command(
    ctx: click.Context,
    base_url: str,
    factor: str,
    distr: str,
    app_id: int,
    gapp_id: int,
    key_file: Path | None,
    guest_file: Path | None,
    link: bool,
    no_socket: bool,
    ws_url: str,
    open_browser: bool,
    qr: bool,
    script_file: Path | None,
    as_json: bool,
) -> None:
    """Log in as a game does: show a link, wait until a user has signed in with a browser, print the user.

    BASE_URL is the address of the service. The command needs neither its settings nor its database.

    \b
    Example:
      sso play http://127.0.0.1:8000 --open
      sso play http://127.0.0.1:8000 --guest guest.pem
      sso play http://127.0.0.1:8009 --scripted cancelled.json
    """
    if script_file is not None:
        serve_script(base_url, script_file)
        return
    if link and guest_file is None:
        raise click.UsageError("--link needs --guest")
    factor = factor or ("sso play" if link else "")  # the user JWT of the guest belongs to a device
    out = sys.stderr if as_json else sys.stdout
    fields: dict[str, str | int] = {"factor": factor, "distr": distr, "app_id": app_id, "gapp_id": gapp_id}
    try:
        options = GameLoginOptions(
            base_url=base_url,
            ws_url=ws_url or "ws" + base_url.removeprefix("http"),
            key=SigningKey.read(key_file) if key_file else None,
            guest_key=GuestKey.read_or_create(guest_file) if guest_file else None,
            socket=not no_socket,
            qr=qr or out.isatty(),
            fields={name: value for name, value in fields.items() if value},
            open=webbrowser.open if open_browser else lambda _link: None,
        )
        screen = Screen(out)
        is_guest = options.guest_key is not None and not link
        result = trio.run(log_in_guest, options) if is_guest else trio.run(log_in, options, screen)
    except (BadKey, GameLoginError) as error:
        raise click.ClickException(str(error)) from None
    except Interrupted:
        ctx.exit(1)
    if as_json:
        print_json(result)
    else:
        screen.result(result)
