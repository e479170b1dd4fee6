"""What the verbs share: settings, a database to speak to, and how a failure is said."""

import os
import pwd
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import trio

from sso import log
from sso.backup.errors import BackupError
from sso.config import ConfigError, Settings, load
from sso.core.encryption import SealError
from sso.core.errors import ApiError
from sso.db.embedded import EmbeddedError, join
from sso.db.errors import DatabaseError, Unavailable
from sso.db.migrate import migrate
from sso.perm.stores import audit
from sso.perm.stores.audit import AuditActor
from sso.serve.listeners import BindError
from sso.serve.privileges import drop_privileges

if TYPE_CHECKING:
    from sso.services import Services

T = TypeVar("T")


def console() -> AuditActor:
    """The actor of changes made on the command line: the account that runs it, and its login name if that differs."""
    try:
        account = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        account = str(os.getuid())
    try:
        login = os.getlogin()
    except OSError:  # no terminal
        login = account
    return AuditActor(operator=account if login == account else f"{login} as {account}")


class CommandFailure(Exception):
    """One line for the person at the terminal."""


def text(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """An argument that can be looked for: a terminal may send bytes that are no text."""
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise click.BadParameter("is not UTF-8")
    return value


FAILURES = (CommandFailure, ApiError, BackupError, ConfigError, SealError, EmbeddedError, DatabaseError, BindError)


def settings_of(ctx: click.Context) -> Settings:
    config_file: Path | None = ctx.find_root().obj
    settings = load(config_file)
    serves = ctx.info_name == "serve"
    log.configure_logging(settings.log_format, settings.log_level if serves else "error")
    if not serves:  # which first opens its sockets
        drop_privileges(settings.user, settings.data_dir)
    return settings


@contextmanager
def connected(settings: Settings, meanwhile: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The address of a running database: the one of the settings, or the embedded one.

    ``meanwhile`` is done while PostgreSQL starts.
    """
    if settings.database_url is not None:
        meanwhile()
        yield settings.database_url.get_secret_value()
        return
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(join, settings.data_dir)
        meanwhile()
        embedded = starting.result()
    try:
        yield embedded.dsn()
    finally:
        embedded.close()


@contextmanager
def database(settings: Settings, meanwhile: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The same, at this program's version."""
    with connected(settings, meanwhile) as dsn:
        _migrate(dsn)
        yield dsn


def _migrate(dsn: str) -> None:
    try:
        migrate(dsn)
    except Unavailable as error:
        raise CommandFailure(
            f"the database cannot be reached ({error}): check SSO_DATABASE_URL and that it runs"
        ) from None


def with_services(ctx: click.Context, work: "Callable[[Services], Awaitable[T]]") -> T:
    """Run ``work`` with the services open, for a verb that does one thing and ends."""
    settings = settings_of(ctx)

    async def run(dsn: str) -> T:
        from sso.perm.stores.seed import seed_central_application
        from sso.services import open_services

        async with open_services(settings, dsn) as services:
            try:
                await seed_central_application(services.database)  # it may be the first thing that is ever done here
                return await work(services)
            except FAILURES as error:
                failure = error
        raise failure  # from here: what passes through a nursery arrives wrapped

    with database(settings) as dsn:
        return trio.run(run, dsn)


async def record(services: "Services", operation: str, target: str, after: Any) -> None:
    """Write an audit entry for a change that is about to be made in a transaction of its own.

    The entry comes first: a command that fails leaves an entry, but no change is left without one.
    """
    await audit.write(services.database, console(), operation, target, None, after)
