"""``sso restore``: restores a backup into an empty database and data directory."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sso.backup import BackupError, postgres_tools
from sso.backup.archive_reader import ArchiveReader
from sso.backup.erasure_times import PostponedErasures, moment_of, postpone_erasures
from sso.backup.manifest import Manifest
from sso.backup.master_keys import all_needed_key_ids, has_master_keys, key_id, master_keys, needed_key_ids
from sso.backup.secrets import Secrets
from sso.config import Settings
from sso.core.encryption import Keyring, MasterKey
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.db.migrate import HEAD, migrate
from sso.db.standalone import fetch_value

# A restored database has no nodes yet. Those of the backup would seem to run, and then be silent for a day.
FORGET_NODES = "DELETE FROM node_workers"
TABLES = "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"


def check_schema(manifest: Manifest) -> None:
    if manifest.schema > HEAD:
        raise BackupError(
            f"the backup is of schema version {manifest.schema}, newer than this program ({HEAD}): "
            f"install version {manifest.program} or newer"
        )


def check_keys(settings: Settings, secrets: Secrets | None) -> None:
    """Raises BackupError if the restored service could not decrypt its secrets."""
    if not has_master_keys(settings):
        return
    if secrets is not None and not set(secrets.master_keys) <= set(master_keys(settings)):
        where, otherwise = str(settings.key_file), "restore into an empty data directory"
        if settings.secret_key is not None:
            where, otherwise = "SSO_SECRET_KEY", "unset SSO_SECRET_KEY to use the keys of the backup"
        raise BackupError(f"{where} has another master key than the backup: add the backup's, or {otherwise}")


class RecoveredKeys(RecordWithHiddenFields, frozen=True):
    """The master keys of the settings and of a backup, those that the recovered database needs first.

    A single damaged value of long ago must not prevent a recovery, and a key can be added later. So ``missing`` has the
    ids of keys that some secrets need, and that the service does not get.
    """

    hidden_fields = frozenset({"key_texts"})

    key_texts: list[str]
    missing: list[str]


def keys_of_recovered(settings: Settings, secrets: Secrets | None, dsn: str) -> RecoveredKeys:
    """Returns the master keys for the recovered database, and the ids of those that it misses.

    The keys may have been changed between the backup and the moment of the recovery.

    Raises BackupError if the service could not decrypt its signing keys, unless neither the settings nor the backup
    have a key.
    """
    present = master_keys(settings) if has_master_keys(settings) else []
    keys = {key_id(text): text for text in [*present, *(secrets.master_keys if secrets else [])]}
    needed = needed_key_ids(dsn)
    if keys and (missing := sorted(needed - keys.keys())):
        raise BackupError(
            f"the recovered database needs the master key {missing[0]}, which neither the backup nor the settings "
            "have. If the key was changed after the base backup: put the new one into SSO_SECRET_KEY or "
            f"{settings.key_file}, or restore with --until before the change"
        )
    if settings.secret_key is not None and (missing := sorted(needed - set(map(key_id, present)))):
        raise BackupError(
            f"SSO_SECRET_KEY does not have the master key {missing[0]}, which the recovered database needs: add it, or "
            "unset SSO_SECRET_KEY to use the keys of the backup"
        )
    all_needed = all_needed_key_ids(dsn)
    used = set(map(key_id, present)) if settings.secret_key is not None else keys.keys()
    key_texts = [keys[name] for name in sorted(keys, key=lambda name: name not in all_needed)]
    return RecoveredKeys(key_texts, sorted(all_needed - used) if used else [])


def check_empty(dsn: str) -> None:
    if fetch_value(dsn, TABLES):
        raise BackupError("the database is not empty: restore into an empty one")


def restore_database(dsn: str, archive: ArchiveReader, progress: Callable[[int, int], None]) -> PostponedErasures:
    """Restores the database in one transaction, then prepares it for this program."""
    moment = moment_of(archive.manifest.created)
    postgres_tools.restore(dsn, archive.dump(progress))
    try:
        return prepare_restored(dsn, moment)
    except Exception as error:
        raise BackupError(
            f"the restored database is not complete: {error}. "
            "Do not start the service with it: empty it, and restore again"
        ) from error


def prepare_restored(dsn: str, moment: datetime) -> PostponedErasures:
    """Migrates a database of the given moment to this program's schema, forgets its nodes, and postpones erasures."""
    migrate(dsn)
    fetch_value(dsn, FORGET_NODES)
    return postpone_erasures(dsn, moment)


def restore_keys(settings: Settings, secrets: Secrets) -> None:
    """Writes the key file and ``keys/*.pem``, unless they exist. A key file gets the keys that it lacks."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not has_master_keys(settings):
        _write(settings.key_file, "".join(f"{key}\n" for key in secrets.master_keys), 0o600)
    elif settings.secret_key is None and not set(secrets.master_keys) <= set(master_keys(settings)):
        Keyring.from_file(settings.key_file).replace([MasterKey.parse(key) for key in secrets.master_keys])
    folder = settings.data_dir / "keys"
    for name, text in secrets.key_files.items():
        if Path(name).name != name:
            raise BackupError(f"the backup contains a key file with an invalid name: {name!r}")
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            _write(folder / name, text, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
