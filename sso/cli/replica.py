"""sso replica"""

import ipaddress
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.echo import echo
from sso.cli.types import APPLICATION_ID
from sso.environment import CLIENT_ID, CLIENT_SECRET, named_client_secret

if TYPE_CHECKING:
    from sso.core.bind_address import Bind
    from sso.replica.async_replica import AsyncReplica


@click.command()
@click.option("--server", metavar="URL", required=True, help="The service, such as https://sso.example.com.")
@click.option("--application", type=APPLICATION_ID, required=True, help="The application that it answers for.")
@click.option(
    "--bind",
    default="127.0.0.1:8181",
    show_default=True,
    help="Where it listens. Programs need no credentials there, so this must be a loopback address.",
)
@click.option("--client-id", envvar=CLIENT_ID, required=True, help="A service client of the application.")
@click.option(
    "--client-secret-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file with its secret (default: the variable SSO_CLIENT_SECRET).",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("replica"),
    show_default=True,
    metavar="FOLDER",
    help="For its encrypted copy, so that it can start while the service is away; by default in the current folder.",
)
@click.option(
    "--max-stale",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Seconds without contact to the service after which it answers 503.",
)
@click.option("--serve-stale", is_flag=True, help="Go on answering after that; Permission-Staleness says how old.")
def command(
    server: str,
    application: int,
    bind: str,
    client_id: str,
    client_secret_file: Path | None,
    data_dir: Path,
    max_stale: float,
    serve_stale: bool,
) -> None:
    """Answer permission checks of one application from memory, next to your game server.

    It reads who may do what at the application, follows the changes, and answers the same requests as the service with
    the same results, also while the service cannot be reached:

    \b
    POST /api/permissions/check    up to 100 questions
    POST /access/v1/evaluation     one question of AuthZEN
    POST /access/v1/evaluations    several of them
    GET  /readyz                   200 if it can answer

    Each response says how many seconds ago its data was current (Permission-Staleness), and up to which change
    (Permission-Revision). A request with At-Least-Revision waits until that change is known.

    Programs ask it without credentials:

    \b
      curl -s http://127.0.0.1:8181/api/permissions/check -H 'Content-Type: application/json' \\
          -d '{"data": {"questions": [{"user_id": "1001", "rule": "chat.kick"}]}}'

    It needs a service client of the application.

    \b
    Example:
      sso client add tanks-server --profile oidc --grant-types client_credentials --application-id 40
      sso replica --server https://sso.example.com --application 40 --client-id tanks-server \\
          --client-secret-file secret.txt
    """
    import trio

    from sso.log import configure_logging
    from sso.replica.async_replica import AsyncReplica
    from sso.serve.process_tuning import enable_garbage_collector

    secret = client_secret_file.read_text().strip() if client_secret_file else named_client_secret()
    if not secret:
        raise click.UsageError(f"Missing option '--client-secret-file', or the variable {CLIENT_SECRET}.")
    if not server.startswith(("https://", "http://")):
        raise click.BadParameter("expected a URL such as https://sso.example.com", param_hint="--server")
    address = _loopback(bind)
    configure_logging("auto", "info")
    replica = AsyncReplica(
        application,
        server=server,
        client_id=client_id,
        client_secret=secret,
        data_dir=data_dir,
        max_stale_s=max_stale,
        serve_stale=serve_stale,
    )
    enable_garbage_collector()
    trio.run(_run, replica, address)


def _loopback(text: str) -> "Bind":
    from sso.core.bind_address import parse_bind

    try:
        bind = parse_bind(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bind") from None
    is_loopback = bind.host == "localhost"
    with suppress(ValueError):
        is_loopback |= ipaddress.ip_address(bind.host).is_loopback
    if not is_loopback:
        raise click.BadParameter(
            "expected a loopback address, such as 127.0.0.1:8181: it asks for no credentials", param_hint="--bind"
        )
    return bind


async def _run(replica: "AsyncReplica", bind: "Bind") -> None:
    import trio

    from sso.replica.sidecar import serve_replica
    from sso.serve.listeners import listen

    stop = trio.Event()
    with listen(bind) as listener, trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        port = listener.getsockname()[1]
        async with replica, trio.open_nursery() as nursery:

            async def stop_at_signal() -> None:
                async for _ in signals:
                    stop.set()
                    return

            nursery.start_soon(stop_at_signal)
            ready = partial(echo, f"listening on {bind.host}:{port}")
            await serve_replica(replica, [listener], stop, ready, [bind.host])
            nursery.cancel_scope.cancel()
