"""Digests of the parts of a backup, and their message authentication code.

``digests.json`` has the SHA-256 of each other part. ``digests.mac`` is its HMAC with a key that is in the encrypted
secrets, so that only somebody with the passphrase can change a part, or put parts of two backups together.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import IO

from sso.backup import BackupError
from sso.backup.secrets import Secrets

DIGESTS, MAC = "digests.json", "digests.mac"
READ_BYTES = 1 << 20
CHANGED = "the backup was changed after it was made: "
UNAUTHENTICATED = (
    "no passphrase authenticates this backup: it was made without one, or by an earlier version, and it may have been "
    "changed. If only trusted accounts could write it, repeat the command with --unauthenticated"
)


def format_digests(digests: dict[str, str]) -> bytes:
    return json.dumps(digests, indent=1).encode()


def authentication_code(secrets: Secrets, digests: bytes) -> bytes:
    return hmac.new(bytes.fromhex(secrets.mac_key), digests, hashlib.sha256).hexdigest().encode()


def check_authentication(
    secrets: Secrets | None, digests: bytes | None, code: bytes | None, *, unauthenticated: bool
) -> None:
    """Raises BackupError unless the digests are authentic, or none were ever made and the caller accepts that.

    The encrypted secrets tell whether there must be a code, so removing it does not turn a backup into an old one.
    """
    if secrets is not None and secrets.mac_key:
        if digests is None or code is None:
            raise BackupError(CHANGED + "its digests are missing")
        if not hmac.compare_digest(authentication_code(secrets, digests), code):
            raise BackupError(CHANGED + "its digests are not those that were authenticated with the passphrase")
    elif not unauthenticated:
        raise BackupError(UNAUTHENTICATED)


def parse_digests(data: bytes) -> dict[str, str]:
    try:
        digests = json.loads(data)
    except (ValueError, RecursionError):
        digests = None
    if not isinstance(digests, dict) or not all(isinstance(value, str) for value in digests.values()):
        raise BackupError(f"the backup is damaged: {DIGESTS} cannot be read")
    return digests


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(READ_BYTES):
        yield piece


def digest_of(parts: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def check_digest(name: str, actual: str | bytes, expected: str | bytes | None) -> None:
    if actual != expected:
        raise BackupError(f"the backup is damaged: the digest of {name} differs")
