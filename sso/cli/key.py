"""sso key …"""

import sys

import click

from sso.cli.context import CommandFailure, record, text, with_services
from sso.config import Settings
from sso.core.encryption import MasterKey
from sso.core.keys import ALGORITHMS, CHEAP
from sso.keys.reseal import Reseal
from sso.keys.store import LEAD_S, LastKey, StoredKey
from sso.services import Services

PROGRESS_EVERY = 10_000  # values, where the output is no terminal


@click.group()
def command() -> None:
    """Signing keys and the master key."""


@command.command("list")
@click.pass_context
def list_keys(ctx: click.Context) -> None:
    """List the signing keys: id, algorithm, and what each is good for now."""

    async def work(services: Services) -> list[StoredKey]:
        await services.key_store.ensure_signing_keys(ALGORITHMS[0], sides=CHEAP)
        return await services.key_store.all()

    keys = with_services(ctx, work)
    signing = {_chain(key): key.kid for key in keys if key.published and key.starts_in <= 0}
    for key in keys:
        click.echo("\t".join([key.kid, key.algorithm, _state(key, signing=signing.get(_chain(key)) == key.kid)]))


@command.command()
@click.option(
    "--alg",
    "algorithm",
    type=click.Choice(ALGORITHMS),
    default=ALGORITHMS[0],
    show_default=True,
    help="What it signs with.",
)
@click.option("--side", is_flag=True, help="The key beside the main one that signs where this algorithm is asked for.")
@click.pass_context
def rotate(ctx: click.Context, algorithm: str, side: bool) -> None:
    """Make a new signing key. It is published at once and signs a little later, without a pause.

    The old one stays published until every token it signed has expired, and 30 days more. Beside the main key there
    is one for ES256 and one for EdDSA: they sign refresh tokens, and id tokens of clients that ask for it.
    """
    if side and algorithm not in CHEAP:
        raise click.UsageError(f"--side goes with --alg {' or '.join(CHEAP)}")

    async def work(services: Services) -> str:
        await record(services, "signing_key.rotate", algorithm, {"algorithm": algorithm, "side": side})
        return await services.key_store.rotate(algorithm, _longest_token(services.settings), side=side)

    click.echo(f"{with_services(ctx, work)} is published and signs in {LEAD_S} seconds")


@command.command()
@click.argument("kid", callback=text)
@click.pass_context
def retire(ctx: click.Context, kid: str) -> None:
    """Take a signing key out of use at once, for instance because it leaked: what it signed is refused."""

    async def work(services: Services) -> bool:
        if kid not in {key.kid for key in await services.key_store.all()}:
            return False
        await record(services, "signing_key.retire", kid, {"retired": True})
        try:
            return await services.key_store.retire(kid)
        except LastKey:
            raise CommandFailure(
                "this is the key that signs: make another first, with `sso key rotate [--side]`"
            ) from None

    if not with_services(ctx, work):
        raise CommandFailure(f"there is no key {kid} in use")
    click.echo(f"{kid} is retired")


@command.command()
def master() -> None:
    """Print a new master key, for SSO_SECRET_KEY."""
    click.echo(MasterKey.generate().text())


@command.command()
@click.option("--drop-old", is_flag=True, help="Only forget master keys that seal nothing any more.")
@click.pass_context
def reseal(ctx: click.Context, drop_old: bool) -> None:
    """Change the master key: make a new one and seal every secret in the database with it.

    The service goes on meanwhile. If this is interrupted, run it again: it goes on with the same new key. The old key
    stays in the file until `sso key reseal --drop-old` finds that nothing needs it. With SSO_SECRET_KEY, set it to
    "new,old", restart, and run this to seal everything with the new one.
    """

    async def work(services: Services) -> str:
        change = Reseal(services.database, services.keyring)
        first = services.keyring.keys[0].id
        left = await change.count_outdated()
        if drop_old:
            if left:
                raise CommandFailure(f"{left} values are still sealed with an old key: run `sso key reseal` first")
            await record(services, "master_key.drop_old", first, {"kept": first})
            services.keyring.keep_only_first()
            return "only the newest master key is kept"
        if services.keyring.source is not None and not left:  # otherwise a change was begun and not finished
            services.keyring.put_first(MasterKey.generate(), instead_of=first)
        await record(services, "master_key.reseal", services.keyring.keys[0].id, {"before": first})
        return f"{await change.run(_progress)} values are sealed with the master key {services.keyring.keys[0].id}"

    click.echo(with_services(ctx, work))


def _progress(done: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done} values are done", err=True, nl=False)
    elif done and done % PROGRESS_EVERY == 0:
        click.echo(f"{done} values are done", err=True)


def _longest_token(settings: Settings) -> int:
    return max(settings.id_ttl_s, settings.access_ttl_s, settings.refresh_ttl_s, settings.jwt_ttl_s)


def _chain(key: StoredKey) -> str:
    return key.algorithm if key.side else ""


def _state(key: StoredKey, *, signing: bool) -> str:
    if key.retired:
        return f"retired {key.retired:%Y-%m-%d %H:%M}"
    if key.starts_in > 0:
        return f"published, signs in {key.starts_in:.0f} s"
    if signing:
        return "signs where it is asked for" if key.side else "signs"
    until = f"{key.published_until:%Y-%m-%d}" if key.published_until else "for ever"
    return f"published until {until}" if key.published else f"expired {until}"
