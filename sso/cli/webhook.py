"""sso webhook …"""

import click

from sso.cli.command_groups import Subcommands
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.standard_input import read_line
from sso.core.ids import secret_token

MAX_SECRET = 512
MAX_LISTED = 10_000

WEBHOOK_ID = click.argument("webhook_id", metavar="ID", callback=utf8_argument)


@click.group(cls=Subcommands)
def command() -> None:
    """Manage webhooks: addresses that changes are sent to. ID is shown by `sso webhook list`.

    \b
    Example:
      sso webhook add https://tools.example.com/sso-events --event permissions
      sso webhook list
    """


@command.command("list")
@list_options
@click.pass_context
def list_webhooks(ctx: click.Context, form: Format | None) -> None:
    """List the webhooks: id, URL, events, flags (disabled, failing) and the last problem.

    \b
    Example:
      sso webhook list
    """
    webhooks = with_records(ctx, lambda records: records.webhooks.list())
    print_list(form, [_listed(webhook) for webhook in webhooks])


@command.command()
@click.argument("url", callback=utf8_argument)
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="NAME",
    callback=utf8_argument,
    help="Type of events, such as user_disabled, or permissions, users or keys; may be given several times (default: "
    "all).",
)
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input (default: generate one).")
@click.pass_context
def add(ctx: click.Context, url: str, events: tuple[str, ...], secret_stdin: bool) -> None:
    """Send changes from now on to URL. Prints the id, and the secret that signs the requests.

    \b
    Example:
      sso webhook add https://tools.example.com/sso-events --event permissions --event users
    """
    _check_events(events)
    secret = read_secret() if secret_stdin else secret_token()
    with option_errors({"url": "URL", "secret": "--secret-stdin", "events": "--event"}):
        webhook_id = with_records(ctx, lambda records: records.webhooks.add(url, secret, events))
    echo(f"webhook_id {webhook_id}")
    if not secret_stdin:
        echo(f"secret {secret}")


@command.command()
@WEBHOOK_ID
@yes_option
@click.pass_context
def delete(ctx: click.Context, webhook_id: str, yes: bool) -> None:
    """Delete a webhook, with its dead letters.

    \b
    Example:
      sso webhook delete 5f2c9a1e8b7d4c60 --yes
    """
    confirm(f"Delete the webhook {webhook_id}? Its dead letters are deleted.", yes)
    with_records(ctx, lambda records: records.webhooks.delete(webhook_id))
    echo(f"{webhook_id} is deleted")


@command.command("dead-letters")
@WEBHOOK_ID
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, MAX_LISTED),
    default=50,
    show_default=True,
    help="Maximum number of events.",
)
@list_options
@click.pass_context
def dead_letters(ctx: click.Context, webhook_id: str, limit: int, form: Format | None) -> None:
    """List the events that could not be delivered for a day, the oldest first. They are kept for 30 days.

    A line has the id, the type of the event, when it failed, the number of tries, whether it is being sent again, and
    the problem. With --json, events are complete.

    \b
    Example:
      sso webhook dead-letters 5f2c9a1e8b7d4c60
    """
    events = with_records(ctx, lambda records: records.webhooks.failed_events(webhook_id, limit))
    print_list(form, events if form == "json" else [_dead_letter(event) for event in events])


@command.command()
@WEBHOOK_ID
@click.argument("events", metavar="[EVENT]...", nargs=-1, callback=utf8_argument)
@click.pass_context
def resend(ctx: click.Context, webhook_id: str, events: tuple[str, ...]) -> None:
    """Send dead letters again: those with the ids EVENT, or all. Those that are accepted leave the list.

    \b
    Example:
      sso webhook resend 5f2c9a1e8b7d4c60
      sso webhook resend 5f2c9a1e8b7d4c60 17 18
    """
    if not all(event.isascii() and event.isdecimal() and len(event) < 19 for event in events):
        raise click.UsageError("expected ids of events, as `sso webhook dead-letters` shows them")
    count = with_records(ctx, lambda records: records.webhooks.resend(webhook_id, events or None))
    echo(f"{count} events are sent again")


def _listed(webhook: Fields) -> Fields:
    delivery = webhook["delivery"]
    flags = {"disabled": webhook["disabled"], "failing": delivery["failing"]}
    return {
        "id": webhook["id"],
        "url": webhook["url"],
        "events": webhook["events"] or ["*"],
        "flags": [name for name, is_set in flags.items() if is_set],
        "problem": delivery.get("problem", ""),
    }


def _dead_letter(event: Fields) -> Fields:
    return {
        "id": event["id"],
        "event": event["event"].get("type", "permissions"),
        "failed_at": event["failed_at"],
        "tries": event["tries"],
        "resending": event["retrying"],
        "problem": event["problem"],
    }


def _check_events(events: tuple[str, ...]) -> None:
    from sso.webhooks.event_filter import EVENT_NAMES

    if not set(events) <= set(EVENT_NAMES):
        raise click.UsageError(f"--event: expected one of {', '.join(EVENT_NAMES)}")


def read_secret() -> str:
    """Returns the secret. It is never an argument, which other users of the machine could see."""
    secret = read_line("secret")
    if not 1 <= len(secret) <= MAX_SECRET:
        raise CommandFailure(f"--secret-stdin: expected a secret of at most {MAX_SECRET} characters on standard input")
    return secret
