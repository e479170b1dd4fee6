"""sso trigger"""

import click

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.server_choice import refuse_server
from sso.cli.webhook import read_secret
from sso.core.ids import secret_token


@click.command()
@click.argument("event", callback=utf8_argument)
@click.option("--to", "url", metavar="URL", required=True, callback=utf8_argument, help="Address of the receiver.")
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input (default: generate one).")
@click.pass_context
def command(ctx: click.Context, event: str, url: str, secret_stdin: bool) -> None:
    """Send an example of EVENT to a receiver of webhooks, signed as the service signs it.

    EVENT is a type, such as user_disabled, or permissions, users, keys or all. The events are made up and nothing is
    changed; no service and no database is needed. The exit code is 1 if the receiver does not accept an event.

    \b
    Example:
      sso trigger user_disabled --to http://localhost:9000/sso-events
      sso trigger all --to http://localhost:9000/sso-events
    """
    import trio

    from sso.webhooks.event_filter import event_name, selected_types

    refuse_server(ctx)
    try:
        types = selected_types([event_name(event)])
    except ValueError as error:
        raise click.UsageError(f"EVENT {error}") from None
    secret = read_secret() if secret_stdin else secret_token()
    if not secret_stdin:
        echo(f"secret {secret}")
    if not trio.run(_send, url, secret, types):
        ctx.exit(1)


async def _send(url: str, secret: str, types: frozenset[str]) -> bool:
    """Returns whether all events were accepted."""
    from sso.change_stream.events import ChangeType
    from sso.core.outgoing_http import OutgoingClient
    from sso.core.outgoing_url import EXPECTED, is_outgoing_url
    from sso.db.clock import DatabaseClock
    from sso.webhooks.model import ClaimedWebhook
    from sso.webhooks.sample_events import sample_event
    from sso.webhooks.sender import LIMITS, EventPost

    if not is_outgoing_url(url, allow_http=True):
        raise CommandFailure(f"--to: {EXPECTED}")
    clock = DatabaseClock()
    # The command sends from the machine of the developer, who may reach every address anyway.
    event_post = EventPost(OutgoingClient(None, LIMITS, lambda _address: True), clock, allow_http=True)
    webhook = ClaimedWebhook("", url, secret, types, 0, 0, "")
    accepted = True
    for change_type in (name for name in ChangeType if name in types):
        failure = await event_post.send(webhook, sample_event(change_type, clock))
        echo(f"{change_type}: {'accepted' if failure is None else failure.reason}")
        accepted = accepted and failure is None
    return accepted
