"""``sso backup --base``: a physical copy of the embedded database, from which a point-in-time recovery starts.

It is a folder with these files:

manifest.json  as in the file of ``sso backup``
secrets.enc    as in the file of ``sso backup``
data/          the data directory of PostgreSQL, copied by pg_basebackup, with the digests of its files but the WAL
digests.json   the digests of the manifest, the secrets, PostgreSQL's list of digests, and the WAL
digests.mac    its authentication code (absent without a passphrase)
"""

import datetime
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sso
from sso.backup import BackupError, postgres_tools
from sso.backup.authentication import DIGESTS, MAC, authentication_code, digest_of, format_digests, pieces
from sso.backup.base_backup_reader import POSTGRES_DIGESTS, files_of, postgres_digests
from sso.backup.manifest import MANIFEST, Manifest
from sso.backup.secrets import SECRETS, new_secrets, require_all_keys
from sso.config import Settings
from sso.db.embedded.files import sync
from sso.db.migrate import current
from sso.db.standalone import fetch_value


def create_base_backup(
    settings: Settings,
    dsn: str,
    folder: Path,
    passphrase: str | None,
    progress: Callable[[int, int], None],
    *,
    with_keys: bool,
) -> Manifest:
    """Writes a base backup while the service runs. Keys need a passphrase."""
    schema = current(dsn)
    if schema is None:
        raise BackupError("the database is empty: there is nothing to back up")
    secrets = None
    if passphrase is not None:
        secrets = new_secrets(settings, dsn, with_keys=with_keys, encrypt_dump=False)
    version = fetch_value(dsn, "SHOW server_version")
    with _new_folder(folder) as draft:
        postgres_tools.base_backup(dsn, draft / "data", progress)
        # The time afterwards: a recovery cannot end earlier.
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        manifest = Manifest(sso.__version__, schema, version, created, has_keys=with_keys)
        _write(draft / MANIFEST, manifest.to_json())
        if secrets is not None and passphrase is not None:
            require_all_keys(settings, secrets)
            _write(draft / SECRETS, secrets.encrypted(passphrase))
        digests = format_digests(_digests(draft))
        _write(draft / DIGESTS, digests)
        if secrets is not None:
            _write(draft / MAC, authentication_code(secrets, digests))
    return manifest


def _digests(folder: Path) -> dict[str, str]:
    """The digests of the files that PostgreSQL's list does not contain."""
    listed = postgres_digests((folder / POSTGRES_DIGESTS).read_bytes())
    digests = {}
    for name in files_of(folder):
        if name not in listed:
            with (folder / name).open("rb") as file:
                digests[name] = digest_of(pieces(file))
    return digests


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A new folder that appears under its name when it is complete. Only the owner can read it."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(0o700)
        yield draft
        sync(draft)
        draft.rename(folder)  # fails if the folder exists and is not empty
        sync(folder.parent)
    except OSError as error:
        raise BackupError(f"cannot write {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
