"""sso key …"""

from functools import partial
from typing import TYPE_CHECKING

import click

from sso.cli.command_groups import Subcommands
from sso.cli.context import (
    CommandFailure,
    LocalServices,
    command_line_account,
    run_with_services,
    settings_of,
    utf8_argument,
)
from sso.cli.echo import echo
from sso.cli.output import Format, list_options, print_list
from sso.cli.progress import Progress
from sso.cli.records import with_records
from sso.core.algorithms import ALGORITHMS, CHEAP_ALGORITHMS, REFRESH_ALGORITHM

if TYPE_CHECKING:
    from sso.cli.records.keys import ListedKey
    from sso.config import Settings

CHANGED_NOTE = (
    "make a new base backup now: the earlier ones do not have the new master key. They need the old one: "
    "keep a copy of it as long as you keep them"
)
DROPPED_NOTE = "base backups from before the change need the old master key: keep a copy of it as long as you keep them"


@click.group(cls=Subcommands)
def command() -> None:
    """Manage the signing keys and the master key.

    Signing keys sign tokens; their public keys are published at /proxy/oauth/keys. The master key encrypts the secrets
    in the database.

    \b
    Example:
      sso key list
      sso key rotate
    """


@command.command("list")
@list_options
@click.pass_context
def list_keys(ctx: click.Context, form: Format | None) -> None:
    """List the signing keys: kid, algorithm and state.

    \b
    Example:
      sso key list
    """
    keys = with_records(ctx, lambda records: records.keys.list())
    print_list(form, [{"kid": key.kid, "algorithm": key.algorithm, "state": _state(key)} for key in keys])


@command.command()
@click.option(
    "--alg",
    "algorithm",
    type=click.Choice(ALGORITHMS),
    default=ALGORITHMS[0],
    show_default=True,
    help="Signing algorithm.",
)
@click.option("--side", is_flag=True, help="Rotate the side key of this algorithm instead of the main key.")
@click.pass_context
def rotate(ctx: click.Context, algorithm: str, side: bool) -> None:
    """Create a new signing key. It is published at once and signs 15 seconds later, without interruption.

    The old key stays published until every token that it signed has expired, and for 30 days more. Besides the main
    key there are two side keys, for ES256 and EdDSA. They sign refresh tokens, and ID tokens of clients with that
    id_alg.

    \b
    Example:
      sso key rotate
      sso key rotate --alg EdDSA --side
    """
    if side and algorithm not in CHEAP_ALGORITHMS:
        raise click.UsageError(f"--side needs --alg {' or '.join(CHEAP_ALGORITHMS)}")
    from sso.keys.rotation import LEAD_S

    kid = with_records(ctx, lambda records: records.keys.rotate(algorithm, side=side))
    echo(f"{kid} is published and signs in {LEAD_S} seconds")


@command.command()
@click.argument("kid", callback=utf8_argument)
@click.pass_context
def retire(ctx: click.Context, kid: str) -> None:
    """Retire a signing key at once, for example because it leaked. Every token that it signed becomes invalid.

    \b
    Example:
      sso key retire CDIhyVCKpfIXkNJRQRRpow
    """
    if not with_records(ctx, lambda records: records.keys.retire(kid)):
        raise CommandFailure(f"there is no key {kid} in use")
    echo(f"{kid} is retired")


@command.command()
def master() -> None:
    """Print a new random master key for SSO_SECRET_KEY. Nothing is changed.

    \b
    Example:
      echo "SSO_SECRET_KEY=$(sso key master)" >> /etc/sso/secrets.env
    """
    from sso.core.encryption import MasterKey

    echo(MasterKey.generate().text())


@command.command()
@click.option(
    "--drop-old", is_flag=True, help="Only remove old master keys from the file; fails if they are still in use."
)
@click.pass_context
def reseal(ctx: click.Context, drop_old: bool) -> None:
    """Change the master key: create a new one and encrypt every secret in the database with it.

    The service keeps running. If the command is interrupted, run it again; it continues with the same new key. The old
    key stays in the file until `sso key reseal --drop-old` has checked that nothing needs it. Both wait until the
    transactions that are open, such as that of `sso apply`, have ended.

    If the key is in SSO_SECRET_KEY: set it to "new,old", restart the service, run this command, then set it to "new".
    With several nodes, set it to "old,new" on each of them first, and restart them: a node that encrypts with the new
    key must not be the only one that has it.

    \b
    Example:
      sso key reseal
      sso key reseal --drop-old
    """

    is_changed = False

    async def work(services: LocalServices) -> str:
        from sso.core.encryption import MasterKey
        from sso.keys.reseal import Reseal

        nonlocal is_changed
        resealing = Reseal(services.database, services.keyring)
        first = services.keyring.keys[0].id
        if services.keyring.source is None and not drop_old:
            await _require_key_on_all_nodes(services, first)
        if drop_old:
            with Progress("checking that the old keys are not in use") as progress:
                await resealing.wait_for_older_transactions(partial(_show_waiting, progress))
        remaining = await resealing.count_outdated()
        if drop_old:
            if remaining:
                raise CommandFailure(f"{remaining} values are still sealed with an old key: run `sso key reseal` first")
            await _audit(services, "master_key.drop_old", first, {"kept": first})
            services.keyring.keep_only_first()
            is_changed = True
            return "only the newest master key is kept"
        if services.keyring.source is not None and not remaining:  # otherwise continue the change that was interrupted
            services.keyring.add_first(MasterKey.generate(), expected_first_id=first)
        is_changed = True
        await _audit(services, "master_key.reseal", services.keyring.keys[0].id, {"before": first})
        with Progress("sealing values") as progress:
            done = await resealing.run(
                lambda done: progress.show(f"{done:,} are done"), partial(_show_waiting, progress)
            )
        return f"{done} values are sealed with the master key {services.keyring.keys[0].id}"

    settings = settings_of(ctx)
    try:
        echo(run_with_services(settings, work))
    finally:  # the new key is in use, although some values could not be sealed with it
        if is_changed and _has_wal_archive(settings):
            echo(DROPPED_NOTE if drop_old else CHANGED_NOTE, err=True)


def _show_waiting(progress: Progress, count: int) -> None:
    progress.show(f"open transactions that must end first: {count}")


def _has_wal_archive(settings: "Settings") -> bool:
    if settings.database_url is not None:
        return False
    from sso.db.embedded.paths import postgres_directory
    from sso.db.embedded.wal_archive import stored_archive

    return stored_archive(postgres_directory(settings.data_dir)) is not None


async def _audit(services: LocalServices, operation: str, key_id: str, after: object) -> None:
    """Writes the entry before the change, so that no change goes without one; a failed change leaves an entry, too."""
    from sso.audit import trail

    await trail.write(
        services.database, trail.AuditActor(operator=command_line_account()), operation, key_id, None, after
    )


async def _require_key_on_all_nodes(services: LocalServices, key_id: str) -> None:
    """A node without the key could not read what is encrypted with it."""
    from sso.nodes.node_list import load_nodes
    from sso.nodes.problems import lacks_key

    nodes = [
        node.name for node in await load_nodes(services.database) if not node.is_silent and lacks_key(node, key_id)
    ]
    if nodes:
        raise CommandFailure(
            f"the master key {key_id} is missing on {', '.join(nodes)}: set SSO_SECRET_KEY there to the same keys as "
            "here, restart, and try again"
        )


def _signs(key: "ListedKey") -> str:
    if not key.side:
        return "signs"
    refresh_tokens = ", and refresh tokens" if key.algorithm == REFRESH_ALGORITHM else ""
    return f"signs ID tokens of clients that chose it{refresh_tokens}"


def _state(key: "ListedKey") -> str:
    until = f"{key.published_until:%Y-%m-%d}" if key.published_until else "for ever"
    match key.state:
        case "retired":
            return f"retired {key.retired:%Y-%m-%d %H:%M}"
        case "waiting":
            return f"published, signs from {key.signs_from:%Y-%m-%d %H:%M:%S}"
        case "signing":
            return _signs(key)
        case "published":
            return f"published until {until}"
    return f"expired {until}"
