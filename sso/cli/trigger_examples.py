"""Sends examples of events to the receiver of a developer: events for webhooks, and signals."""

import json
from collections.abc import Sequence
from uuid import uuid4

import click
import trio

from sso.change_stream.events import ChangeType
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.core.jwt import Signer
from sso.core.keys import GENERATE, UnusableKey, algorithm_of, load_private, public_jwk
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.db.clock import DatabaseClock
from sso.delivery.due_queue import Failure
from sso.oauth.tokens.dpop import jwk_thumbprint
from sso.signals.event_types import SignalType
from sso.ssf import push
from sso.ssf.event_tokens import SET_TYPE, event_claims
from sso.ssf.examples import EXAMPLES
from sso.ssf.model import StoredSignal
from sso.webhooks import sender
from sso.webhooks.event_filter import event_name, selected_types
from sso.webhooks.model import ClaimedWebhook
from sso.webhooks.sample_events import sample_event

ALL_SIGNALS = "signals"
AUDIENCE, STREAM = "shop", "example-stream"  # if no client is named


def signals_named(event: str) -> Sequence[str]:
    """Returns the types of signals that the name means; none if it is not about signals."""
    return list(SignalType) if event == ALL_SIGNALS else [name for name in SignalType if name == event]


def types_named(event: str) -> frozenset[str]:
    """Returns the types of events of webhooks that the name means."""
    try:
        return selected_types([event_name(event)])
    except ValueError as error:
        raise click.UsageError(f"EVENT {error}; or of signals: {', '.join((ALL_SIGNALS, *SignalType))}") from None


def post_events(url: str, secret: str, types: frozenset[str]) -> bool:
    """Returns whether the receiver has accepted all events."""
    clock = DatabaseClock()
    webhook = ClaimedWebhook("", url, secret, types, 0, 0, "")

    async def post() -> bool:
        event_post = sender.EventPost(_client(sender.LIMITS), clock, allow_http=True)
        names = [name for name in ChangeType if name in types]
        return all([_report(name, await event_post.send(webhook, sample_event(name, clock))) for name in names])

    return trio.run(post)


def push_signals(url: str, signals: Sequence[str], private_key: str | None, issuer: str, client_id: str | None) -> bool:
    """Returns whether the receiver has accepted all signals. Prints the keys that verify them."""
    signer = _signer(private_key)
    echo(f"jwks {json.dumps({'keys': [public_jwk(signer.key.public_key(), signer.kid)]})}")

    async def push_all() -> bool:
        client = _client(push.LIMITS)
        tokens = {name: signer.sign(event_claims(issuer, _signal(name, client_id)), SET_TYPE) for name in signals}
        sent = [
            _report(name, await push.push_event(client, url, token, allow_http=True)) for name, token in tokens.items()
        ]
        return all(sent)

    return trio.run(push_all)


def _signer(private_key: str | None) -> Signer:
    """The id of a key is its thumbprint, so that the same key has the same id each time."""
    try:
        key = GENERATE["RS256"]() if private_key is None else load_private(private_key)
    except UnusableKey as error:
        raise CommandFailure(f"--key: {error}") from None
    public = key.public_key()
    return Signer(jwk_thumbprint(public), key, algorithm_of(public))


def _signal(name: str, client_id: str | None) -> StoredSignal:
    now, example = DatabaseClock().utc(), EXAMPLES[name]
    return StoredSignal(
        id=0,
        jti=str(uuid4()),
        at=now,
        txn=f"0-{int(now.timestamp() * 1_000_000)}",
        stream_id=STREAM,
        client_id=client_id or AUDIENCE,
        id_alg="",
        **example.values(),
    )


def _client(limits: OutgoingLimits) -> OutgoingClient:
    # The command sends from the machine of the developer, who may reach every address anyway.
    return OutgoingClient(None, limits, lambda _address: True)


def _report(name: str, failure: Failure | None) -> bool:
    echo(f"{name}: {'accepted' if failure is None else failure.reason}")
    return failure is None
