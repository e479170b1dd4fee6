"""Checks that the demo uses an installation of its own: its administrator has a password that everybody knows.

The environment may name another installation, with exported settings of a service. The demo's data directory has a mark
by which it is recognised. It uses no database, configuration or key of others, and only this machine can reach it.
"""

import os
import pwd
import shlex
import shutil
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from sso.config import ConfigError, load
from sso.core.bind_address import parse_binds
from sso.core.test_players import PUBLIC_PASSWORD
from sso.db.embedded import EmbeddedError
from sso.db.embedded.paths import has_database, postgres_directory
from sso.db.embedded.temporary_server import unused
from sso.demo.mark import MARK, MARK_TEXT, has_mark
from sso.settings import Settings

PUBLIC = "the password of the demo is public, so only this machine may reach it"
ANOTHER = "which may be that of another installation; scripts/run would add an administrator with a public password"
STOPPING_S = 10.0  # how long PostgreSQL may take to stop after the service
NEW_DIRECTORY = "Set SSO_DATA_DIR to a new directory"
# Settings that lead to something outside of the data directory, which another service may use.
OTHERS = ("SSO_CONFIG", "SSO_DATABASE_URL", "SSO_SECRET_KEY", "SSO_WAL_ARCHIVE", "SSO_BUS_URL", "SSO_SMTP_URL")


class NotTheDemo(Exception):
    """The environment names an installation that is not the demo's. The text is the reason and the way out."""


def demo_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of the demo that the environment does not have: browsers offer passkeys at localhost only."""
    settings = {"SSO_REGISTRATION": "open", "SSO_GUESTS": "on", "SSO_TEST_PLAYER_PASSWORD": PUBLIC_PASSWORD}
    host, _, port = environment.get("SSO_BIND", "127.0.0.1:8000").rpartition(":")
    if host == "127.0.0.1" and port.isdecimal():
        settings["SSO_BASE_URL"] = f"http://localhost:{port}"
    return {name: value for name, value in settings.items() if not environment.get(name)}


def check_installation(environment: Mapping[str, str]) -> Path:
    """Returns the data directory of the demo. Raises NotTheDemo, and changes nothing."""
    for name in OTHERS:
        if environment.get(name):
            raise NotTheDemo(
                f"{name}: the demo has its own data, not those of another service: run `unset {name}` first"
            )
    try:
        settings = load(environ=environment)
    except ConfigError as error:
        raise NotTheDemo(str(error)) from None
    _check_addresses(settings)
    data_dir = settings.data_dir.absolute()
    try:
        if not _is_empty(data_dir):
            _check_links(data_dir)
            _check_mark(data_dir, _accounts(settings))
    except OSError as error:
        raise NotTheDemo(f"SSO_DATA_DIR: cannot read {error.filename}: {error.strerror}. {NEW_DIRECTORY}") from None
    return data_dir


def _check_addresses(settings: Settings) -> None:
    for name, value in (("SSO_BIND", settings.bind), ("SSO_METRICS_BIND", settings.metrics_bind)):
        for bind in parse_binds(value) if value else ():
            if not bind.is_local():
                raise NotTheDemo(f"{name}: {bind} can be reached by others; {PUBLIC}: use an address of 127.0.0.1")
    if not settings.is_loopback:
        raise NotTheDemo(f"SSO_BASE_URL: {settings.base_url} is not an address of this machine; {PUBLIC}")


def _check_links(data_dir: Path) -> None:
    """Raises NotTheDemo if the database, a key or the mark may be those of another installation."""
    pointer, postgres = data_dir / "postgres.location", data_dir / "postgres"
    for path in chain(data_dir.iterdir(), postgres.iterdir() if postgres.is_dir() else ()):
        if path.is_symlink():
            raise NotTheDemo(f"SSO_DATA_DIR: {path} is a symbolic link, {ANOTHER}. {NEW_DIRECTORY}")
    if pointer.exists():
        home = Path(pointer.read_text(errors="replace").strip())
        owner = home / "belongs-to"  # if root starts the service, it may create the database outside of the directory
        if not owner.is_file() or owner.read_text(errors="replace").strip() != str(data_dir.resolve()):
            raise NotTheDemo(f"SSO_DATA_DIR: {pointer} names the database {home}, {ANOTHER}. {NEW_DIRECTORY}")


def _check_mark(data_dir: Path, accounts: set[int]) -> None:
    mark = data_dir / MARK
    if not has_mark(data_dir):
        raise NotTheDemo(
            f"SSO_DATA_DIR: {data_dir} was not created by scripts/run, which would add an administrator with a public "
            f"password. {NEW_DIRECTORY}. If it has demo data only, run "
            f"`echo {shlex.quote(MARK_TEXT.strip())} > {shlex.quote(str(mark))}`"
        )
    if mark.stat().st_uid not in accounts:
        raise NotTheDemo(
            f"SSO_DATA_DIR: {data_dir} was not created by scripts/run under this account: {mark} belongs to another. "
            f"{NEW_DIRECTORY}"
        )


def _accounts(settings: Settings) -> set[int]:
    """The account that runs the demo, and the one that the service switches to."""
    return {os.geteuid()} | ({pwd.getpwnam(settings.user).pw_uid} if settings.user else set())


def _is_empty(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def delete_data_directory(data_dir: Path) -> None:
    """Deletes everything that `check_installation` has found to be the demo's. Raises NotTheDemo if it is in use."""
    try:
        if has_database(data_dir):
            _delete_database(postgres_directory(data_dir))
    except EmbeddedError as error:
        raise NotTheDemo(f"--reset: {error}") from None
    if data_dir.exists():
        shutil.rmtree(data_dir)


def _delete_database(home: Path) -> None:
    """Waits for a PostgreSQL that is stopping, because the service has just ended."""
    deadline = time.monotonic() + STOPPING_S
    while True:
        try:
            with unused(home):
                return shutil.rmtree(home)
        except EmbeddedError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def claim_data_directory(data_dir: Path) -> None:
    """Creates the data directory with its mark, before the service puts anything there."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (data_dir / MARK).exists():
        with (data_dir / MARK).open("x") as file:  # which follows no link
            file.write(MARK_TEXT)
