"""sso user merge, unmerge, links and unlink: users who are one player, and how they sign in."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import utf8_argument
from sso.cli.echo import echo, echo_json
from sso.cli.impact_format import format_impact
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords

ID_OR_LOGIN = click.argument("id_or_login", callback=utf8_argument)
FROM = click.argument("from_user", metavar="FROM", callback=utf8_argument)
INTO = click.argument("into", callback=utf8_argument)


@click.command()
@FROM
@INTO
@click.option("--dry-run", is_flag=True, help="Say what would move and who would gain what, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@yes_option
@click.pass_context
def merge(ctx: click.Context, from_user: str, into: str, dry_run: bool, as_json: bool, yes: bool) -> None:
    """Merge a user into another one, who gets the keys, store accounts, roles, data of games, tags and purchases.

    FROM is disabled, and its id stays as an alias. `sso user unmerge` undoes it for 7 days.

    \b
    Example:
      sso user merge 1002 ann@example.com --dry-run
    """
    if not dry_run:
        confirm(f"Merge {from_user} into {into}?", yes)

    async def work(records: "ServiceRecords") -> Fields:
        first, second = await records.users.find(from_user), await records.users.find(into)
        return await records.users.merge(first, second, dry_run=dry_run)

    result = with_records(ctx, work)
    if as_json:
        echo_json(result, indent=True)
        return
    for line in _lines(result, dry_run=dry_run):
        echo(line)
    if not dry_run:
        echo(f"{from_user} is merged into {into}")


@click.command()
@INTO
@FROM
@click.pass_context
def unmerge(ctx: click.Context, into: str, from_user: str) -> None:
    """Undo the merge of FROM into a user. What was changed since is printed, and stays.

    \b
    Example:
      sso user unmerge ann@example.com 1002
    """

    async def work(records: "ServiceRecords") -> Sequence[str]:
        return await records.users.unmerge(await records.users.find(into), await records.users.find(from_user))

    for text in with_records(ctx, work):
        echo(f"changed since: {text}")
    echo(f"{from_user} is a user of its own again")


@click.command()
@ID_OR_LOGIN
@click.option("--json", "as_json", is_flag=True, help="Print the links as JSON.")
@click.pass_context
def links(ctx: click.Context, id_or_login: str, as_json: bool) -> None:
    """List the keys of devices and the store accounts with which a user signs in.

    \b
    Example:
      sso user links ann@example.com
    """

    async def work(records: "ServiceRecords") -> Sequence[Fields]:
        return await records.users.links(await records.users.find(id_or_login))

    found = with_records(ctx, work)
    if as_json:
        echo_json(found, indent=True)
        return
    for link in found:
        echo(f"{link['id']}  {link['kind']}  {link['name']}  last used {link['last_used'][:10]}")


@click.command()
@ID_OR_LOGIN
@click.argument("link_id", callback=utf8_argument)
@click.pass_context
def unlink(ctx: click.Context, id_or_login: str, link_id: str) -> None:
    """Remove a key or a store account of a user. The last way to sign in cannot be removed.

    \b
    Example:
      sso user unlink ann@example.com 6f1f6c0e4b7c4d0f
    """

    async def work(records: "ServiceRecords") -> None:
        await records.users.remove_link(await records.users.find(id_or_login), link_id)

    with_records(ctx, work)
    echo(f"{link_id} is removed")


COMMANDS = (merge, unmerge, links, unlink)


def _lines(result: dict[str, Any], *, dry_run: bool) -> Iterator[str]:
    for name, items in result["moves"].items():
        if items:
            texts = (", ".join(map(str, item.values())) if isinstance(item, dict) else str(item) for item in items)
            yield f"{name}: {'; '.join(texts)}"
    for warning in result["warnings"]:
        yield f"warning: {warning}"
    if dry_run:
        yield from format_impact(result, {})
