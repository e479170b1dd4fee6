"""What the commands share: settings, the connection to the database, and error reporting.

Functions import what only a running command needs: ``--help`` and completion should answer at once.
"""

import os
import pwd
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from sso.cli.progress import Progress
from sso.cli.server_choice import refuse_server
from sso.core.errors import ApiError, OperatorError

if TYPE_CHECKING:
    from sso.config import Settings
    from sso.core.encryption import Keyring
    from sso.db.database import Database

T = TypeVar("T")


def command_line_account() -> str:
    """Returns the operator in audit entries: the account that runs this command, and its login name if that differs."""
    try:
        account = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        account = str(os.getuid())
    try:
        login = os.getlogin()
    except OSError:  # no terminal
        login = account
    return account if login == account else f"{login} as {account}"


class CommandFailure(OperatorError):
    """The command failed."""


def utf8_argument(_ctx: click.Context, _parameter: click.Parameter, value: Any) -> Any:
    """Rejects arguments that are not UTF-8 (surrogates), which PostgreSQL cannot store or compare.

    An option that was not given is None, and one that may be given several times is a tuple.
    """
    texts = (value or "",) if isinstance(value, str | None) else value
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise click.BadParameter("expected UTF-8")
    return value


FAILURES = (OperatorError, ApiError)


def settings_of(ctx: click.Context, *, may_create: bool = False) -> "Settings":
    """Returns the settings. ``may_create`` is for commands that create a missing data directory.

    Raises NoDataDirectory without it, before anything is created.
    """
    from sso import log
    from sso.cli.data_directory import require_data_directory
    from sso.config import load
    from sso.serve.privileges import drop_privileges

    refuse_server(ctx)
    config_file: Path | None = ctx.find_root().obj
    settings = load(config_file)
    serves = ctx.info_name == "serve"
    log.configure_logging(settings.log_format, settings.log_level if serves else "error")
    if settings.database_url is None and not may_create:
        require_data_directory(settings)
    if not serves:  # `sso serve` switches after it has opened its sockets
        drop_privileges(settings.user, settings.data_dir, may_create=may_create)
    return settings


@contextmanager
def running_database(settings: "Settings", meanwhile: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yields the DSN of a running database: the configured one, or the embedded one, which is started if needed.

    ``meanwhile`` runs while the embedded PostgreSQL starts.
    """
    if settings.database_url is not None:
        meanwhile()
        yield settings.database_url.get_secret_value()
        return
    from concurrent.futures import ThreadPoolExecutor

    from sso.cli.data_directory import is_missing
    from sso.db.embedded import join

    what = f"{'creating' if is_missing(settings) else 'starting'} the database in {settings.data_dir.resolve()}"
    with Progress(what) as progress, ThreadPoolExecutor(1) as pool:
        starting = pool.submit(join, settings.data_dir)
        meanwhile()
        embedded = progress.wait(starting)
    try:
        yield embedded.dsn()
    finally:
        embedded.close()


@contextmanager
def migrated_database(
    settings: "Settings", meanwhile: Callable[[], None] = lambda: None, *, wait: bool = False, in_child: bool = False
) -> Iterator[str]:
    """Yields the DSN of a running database whose schema is up to date.

    With ``wait``, a database of SSO_DATABASE_URL that is not reachable has SSO_START_WAIT_S to become so. ``in_child``
    migrates in a child process, which saves the memory of a process that lives long.
    """
    from sso.cli.database_start import migrate_database

    with running_database(settings, meanwhile) as dsn:
        migrate_database(dsn, settings.start_wait_s if wait and settings.database_url else 0, in_child=in_child)
        yield dsn


class LocalServices(Struct, frozen=True):
    """The database of this machine, and what its secrets are encrypted with."""

    settings: "Settings"
    database: "Database"
    keyring: "Keyring"


def run_with_services(
    settings: "Settings",
    work: Callable[[LocalServices], Awaitable[T]],
    *,
    may_create: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> T:
    """Opens the database, runs ``work`` and returns its result.

    ``may_create`` is for commands that create a missing data directory. ``meanwhile`` runs while the embedded
    PostgreSQL starts.
    """
    import trio

    from sso.cli.data_directory import announce_creation
    from sso.cli.deferred_keyring import DeferredKeyring
    from sso.db.database import Database
    from sso.db.time_limits import TimeLimits
    from sso.keys.missing_key import is_master_key_missing

    if settings.database_url is None and may_create:
        announce_creation(settings)

    async def run(dsn: str, keyring: DeferredKeyring) -> T:
        limits = TimeLimits.of_command(settings.database_timeout_s)
        async with Database.open(dsn, settings.database_pool, limits=limits) as database:
            return await work(LocalServices(settings, database, keyring))

    with migrated_database(settings, meanwhile) as dsn, plain_failures():
        missing = is_master_key_missing(settings, dsn)
        keyring = DeferredKeyring(settings, may_create=may_create, is_missing=missing)
        if may_create and settings.database_url is None and not missing:
            keyring.open()  # a backup of a new data directory needs its key, even if nothing is encrypted yet
        return trio.run(run, dsn, keyring)


@contextmanager
def plain_failures(*others: type[Exception]) -> Iterator[None]:
    """Raises the failure itself if nurseries have wrapped it in exception groups. ``others`` are failures too."""
    try:
        yield
    except BaseExceptionGroup as group:
        if group.split((*FAILURES, *others))[1] is not None:
            raise
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
