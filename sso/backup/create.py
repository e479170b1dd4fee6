"""``sso backup``: writes the database and the keys to one file."""

import datetime
from collections.abc import Callable
from pathlib import Path

import sso
from sso.backup import BackupError
from sso.backup.archive import new_file, write_archive
from sso.backup.manifest import Manifest
from sso.backup.postgres_tools import dump
from sso.backup.secrets import new_secrets, require_all_keys
from sso.config import Settings
from sso.db.migrate import current
from sso.db.standalone import fetch_value


def create_backup(
    settings: Settings,
    dsn: str,
    path: Path,
    passphrase: str | None,
    progress: Callable[[int], None],
    *,
    with_keys: bool,
    encrypted: bool,
) -> Manifest:
    """Writes a backup that is consistent although the service runs. Keys and encryption need a passphrase.

    ``progress`` is called with the number of bytes of the database dump so far.
    """
    schema = current(dsn)
    if schema is None:
        raise BackupError("the database is empty: there is nothing to back up")
    manifest = Manifest(
        program=sso.__version__,
        schema=schema,
        postgres=fetch_value(dsn, "SHOW server_version"),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        has_keys=with_keys,
        encrypted=encrypted,
    )
    protection = None
    if passphrase is not None:
        protection = new_secrets(settings, dsn, with_keys=with_keys, encrypt_dump=encrypted), passphrase
    with new_file(path) as file:
        write_archive(file, manifest, protection, dump(dsn), progress)
        if protection is not None:
            require_all_keys(settings, protection[0])
    return manifest
