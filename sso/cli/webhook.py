"""sso webhook …"""

import sys

import click

from sso.cli.administration import Fields
from sso.cli.backend import with_administration
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.groups import Subcommands
from sso.cli.output import Format, list_options, print_list
from sso.core.ids import secret_token

WEBHOOK_ID = click.argument("webhook_id", metavar="ID", callback=utf8_argument)


@click.group(cls=Subcommands)
def command() -> None:
    """Manage webhooks: addresses that get a signed request for each change.

    \b
    Example:
      sso webhook add https://tools.example.com/sso-events --event permissions
      sso webhook list
    """


@command.command()
@click.argument("url", callback=utf8_argument)
@click.option("--event", "events", multiple=True, help="Event or group of events (default: all).")
@click.option("--secret-stdin", is_flag=True, help="Read the secret from standard input (default: generate one).")
@click.pass_context
def add(ctx: click.Context, url: str, events: tuple[str, ...], secret_stdin: bool) -> None:
    """Add a webhook, and print its id and the secret that its requests are signed with.

    \b
    Example:
      sso webhook add https://tools.example.com/sso-events --event permissions --event users
    """
    secret = _read_secret() if secret_stdin else secret_token()
    webhook_id = with_administration(ctx, lambda admin: admin.webhooks.add(url, secret, events), with_permissions=False)
    click.echo(f"id {webhook_id}")
    if not secret_stdin:
        click.echo(f"secret {secret}")


@command.command("list")
@list_options
@click.pass_context
def list_webhooks(ctx: click.Context, form: Format | None) -> None:
    """List the webhooks, with their state: active, failing or disabled.

    \b
    Example:
      sso webhook list
    """
    webhooks = with_administration(ctx, lambda admin: admin.webhooks.list(), with_permissions=False)
    print_list(form, map(_listed, webhooks))


@command.command()
@WEBHOOK_ID
@yes_option
@click.pass_context
def remove(ctx: click.Context, webhook_id: str, yes: bool) -> None:
    """Remove a webhook, with the events that could not be delivered to it.

    \b
    Example:
      sso webhook remove 5cf0d2a1b3e4f678
    """
    confirm(f"Remove {webhook_id}, with its failed events?", yes)
    with_administration(ctx, lambda admin: admin.webhooks.remove(webhook_id), with_permissions=False)
    click.echo(f"{webhook_id} is removed")


@command.command()
@WEBHOOK_ID
@list_options
@click.pass_context
def failed(ctx: click.Context, webhook_id: str, form: Format | None) -> None:
    """List the events that could not be delivered, the oldest first.

    \b
    Example:
      sso webhook failed 5cf0d2a1b3e4f678
    """
    events = with_administration(ctx, lambda admin: admin.webhooks.failed(webhook_id), with_permissions=False)
    print_list(form, map(_failed, events))


@command.command()
@WEBHOOK_ID
@click.option(
    "--event", "event_ids", metavar="EVENT_ID", multiple=True, callback=utf8_argument, help="Only this event."
)
@click.pass_context
def retry(ctx: click.Context, webhook_id: str, event_ids: tuple[str, ...]) -> None:
    """Send failed events again, all of them or those that --event names. `sso webhook failed` lists their ids.

    \b
    Example:
      sso webhook retry 5cf0d2a1b3e4f678 --event 17
    """
    count = with_administration(ctx, lambda admin: admin.webhooks.retry(webhook_id, event_ids), with_permissions=False)
    click.echo(f"{count} events are sent again")


def _listed(webhook: Fields) -> Fields:
    is_failing = webhook["delivery"]["failing"]
    return {
        "id": webhook["id"],
        "url": webhook["url"],
        "events": webhook["events"],
        "state": "disabled" if webhook["disabled"] else "failing" if is_failing else "active",
        "problem": webhook["delivery"].get("problem", ""),
    }


def _failed(event: Fields) -> Fields:
    return {
        "id": event["id"],
        "type": event["event"].get("type", "permissions_changed"),
        "failed_at": event["failed_at"],
        "tries": event["tries"],
        "problem": event["problem"],
        "retrying": event["retrying"],
    }


def _read_secret() -> str:
    secret = sys.stdin.readline().rstrip("\r\n")
    if not secret:
        raise CommandFailure("--secret-stdin: expected the secret on standard input")
    return secret
