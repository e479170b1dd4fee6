"""sso trigger"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.server_choice import refuse_server
from sso.cli.webhook import read_secret
from sso.core.ids import secret_token
from sso.signals.event_types import STREAM_TYPES

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords

# What the options are for that not every event uses.
_WEBHOOKS, _SIGNALS, _PUSHED, _STREAM = "webhooks", "signals", "signals with --to", "signals without --to"
_PURPOSES = {
    "secret_stdin": ("--secret-stdin", _WEBHOOKS),
    "client_id": ("--client", _SIGNALS),
    "key_file": ("--key", _PUSHED),
    "issuer": ("--issuer", _PUSHED),
    "stream_id": ("--stream", _STREAM),
}


@click.command()
@click.argument("event", callback=utf8_argument)
@click.option("--to", "url", metavar="URL", callback=utf8_argument, help="Address of the receiver.")
@click.option(
    "--secret-stdin", is_flag=True, help="Webhooks: read the secret from standard input (default: generate one)."
)
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Signals with --to: private key in PEM that signs them (default: generate one, and print its key set).",
)
@click.option(
    "--issuer",
    metavar="URL",
    default="https://sso.example.com",
    show_default=True,
    callback=utf8_argument,
    help="Signals with --to: the issuer.",
)
@click.option("--client", "client_id", metavar="ID", callback=utf8_argument, help="Signals: the client they are for.")
@click.option(
    "--stream",
    "stream_id",
    metavar="ID",
    callback=utf8_argument,
    help="Signals without --to: the stream of the client (default: its only one).",
)
@click.pass_context
def command(
    ctx: click.Context,
    event: str,
    url: str | None,
    secret_stdin: bool,
    key_file: str | None,
    issuer: str,
    client_id: str | None,
    stream_id: str | None,
) -> None:
    """Send an example of EVENT to a receiver of webhooks or signals, signed as the service signs it.

    For webhooks, EVENT is a type, such as user_disabled, or permissions, users, keys or all. For signals (Shared
    Signals), it is a type, such as session-revoked, or signals for all of them. The events are made up: nothing has
    happened to a user. The exit code is 1 if the receiver does not accept an event. Options that EVENT does not use
    are refused.

    With --to, no service and no database is needed. Without it, the service signs the signals and sends them through a
    stream of the client, pushed or with the next poll.

    \b
    Example:
      sso trigger user_disabled --to http://localhost:9000/sso-events
      sso trigger all --to http://localhost:9000/sso-events
      sso trigger session-revoked --to http://localhost:9000/signals --client shop
      sso trigger signals --client shop
    """
    from sso.cli import trigger_examples

    if signals := trigger_examples.signals_named(event):
        _refuse_other_options(ctx, _SIGNALS, _STREAM if url is None else _PUSHED)
        if url is None:
            _send_through_stream(ctx, signals, client_id, stream_id)
            return
        accepted = trigger_examples.push_signals(
            _receiver(ctx, url), signals, _private_key(key_file), issuer, client_id
        )
    else:
        types = trigger_examples.types_named(event)
        _refuse_other_options(ctx, _WEBHOOKS)
        receiver = _receiver(ctx, url)
        secret = read_secret() if secret_stdin else secret_token()
        if not secret_stdin:
            echo(f"secret {secret}")
        accepted = trigger_examples.post_events(receiver, secret, types)
    if not accepted:
        ctx.exit(1)


def _refuse_other_options(ctx: click.Context, *purposes: str) -> None:
    """Raises UsageError for an option that would be ignored."""
    for parameter, (option, purpose) in _PURPOSES.items():
        if purpose not in purposes and ctx.get_parameter_source(parameter) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{option} is for {purpose}")


def _receiver(ctx: click.Context, url: str | None) -> str:
    from sso.core.outgoing_url import EXPECTED, is_outgoing_url

    refuse_server(ctx)
    if url is None:
        raise click.UsageError("--to: expected the address of the receiver")
    if not is_outgoing_url(url, allow_http=True):
        raise CommandFailure(f"--to: {EXPECTED}")
    return url


def _private_key(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="ascii")
    except (OSError, ValueError):
        raise CommandFailure("--key: expected a file with a private key in PEM") from None


def _send_through_stream(
    ctx: click.Context, signals: Sequence[str], client_id: str | None, stream_id: str | None
) -> None:
    """Adds the examples to a stream. Of all signals, it gets those that it has asked for."""
    if client_id is None:
        raise click.UsageError("expected --to, the address of a receiver, or --client, whose stream gets the signals")

    async def send(records: "ServiceRecords") -> tuple[str, list[str]]:
        stream = _chosen(await records.clients.signal_streams(client_id), client_id, stream_id)
        got = (*stream["events"], *STREAM_TYPES)
        names = list(signals) if len(signals) == 1 else [name for name in signals if name in got]
        for name in names:
            await records.clients.send_example_signal(client_id, stream["id"], name)
        return stream["id"], names

    with option_errors({"event": "EVENT"}):
        chosen, sent = with_records(ctx, send)
    for name in sent:
        echo(f"{name}: added to the stream {chosen}")


def _chosen(streams: Sequence[Fields], client_id: str, stream_id: str | None) -> Fields:
    ids = ", ".join(stream["id"] for stream in streams)
    if not streams:
        raise CommandFailure(f"the client {client_id} has no stream of signals; it creates one with POST /ssf/stream")
    if stream_id is None and len(streams) > 1:
        raise CommandFailure(f"--stream: expected one of {ids}")
    chosen = [stream for stream in streams if stream_id in (None, stream["id"])]
    if not chosen:
        raise CommandFailure(f"--stream: expected {'one of ' if len(streams) > 1 else ''}{ids}")
    return chosen[0]
