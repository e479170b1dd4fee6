"""What a backup encrypts with its passphrase: the keys of the service, and those that protect the backup itself."""

import json
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from msgspec.structs import asdict

from sso.backup import BackupError, chunk_encryption
from sso.backup.master_keys import key_id, master_keys, needed_key_ids
from sso.config import Settings
from sso.core.hidden_fields import RecordWithHiddenFields

MAGIC = b"sso passphrase 1\n"
SALT_BYTES = 16
NONCE_BYTES = 12
# 128 MB and about half a second for each guess.
SCRYPT = {"length": 32, "n": 2**17, "r": 8, "p": 1}

SECRETS = "secrets.enc"


# Encryption with a passphrase: AES-256-GCM under a key that scrypt derives.
class WrongPassphrase(Exception):
    """The passphrase is wrong, or the data was changed."""


def encrypt(passphrase: str, plaintext: bytes) -> bytes:
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    return MAGIC + salt + nonce + _cipher(passphrase, salt).encrypt(nonce, plaintext, MAGIC)


def decrypt(passphrase: str, box: bytes) -> bytes:
    """Raises WrongPassphrase if the passphrase does not fit the data."""
    if not box.startswith(MAGIC):
        raise WrongPassphrase
    salt, rest = box[len(MAGIC) :][:SALT_BYTES], box[len(MAGIC) + SALT_BYTES :]
    try:
        return _cipher(passphrase, salt).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], MAGIC)
    except (InvalidTag, ValueError):
        raise WrongPassphrase from None


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt, **SCRYPT).derive(passphrase.encode()))


class Secrets(RecordWithHiddenFields, frozen=True):
    hidden_fields = frozenset({"master_keys", "key_files", "mac_key", "dump_key"})

    master_keys: list[str]  # the newest first; empty with ``--no-keys``
    key_files: dict[str, str]  # name in ``keys/`` -> PEM
    mac_key: str = ""  # hexadecimal; empty in backups of earlier versions, which nothing authenticates
    dump_key: str = ""  # hexadecimal; empty if the dump is not encrypted

    def encrypted(self, passphrase: str) -> bytes:
        return encrypt(passphrase, json.dumps(asdict(self)).encode())

    @classmethod
    def decrypted(cls, data: bytes, passphrase: str) -> "Secrets":
        try:
            return cls(**json.loads(decrypt(passphrase, data)))
        except WrongPassphrase:
            raise BackupError("the passphrase is wrong") from None


def new_secrets(settings: Settings, dsn: str, *, with_keys: bool, encrypt_dump: bool) -> Secrets:
    """The keys of the service, unless they are left out, and new keys for one backup.

    Raises BackupError if the keys of the settings do not decrypt the secrets of the database.
    """
    mac_key = chunk_encryption.new_key().hex()
    dump_key = chunk_encryption.new_key().hex() if encrypt_dump else ""
    if not with_keys:
        return Secrets([], {}, mac_key, dump_key)
    needed = needed_key_ids(dsn)  # before the keys: a new one is in the file before a value needs it
    keys = master_keys(settings)
    if missing := sorted(needed - set(map(key_id, keys))):
        raise BackupError(
            f"the master key of these settings is not that of the database, which needs {missing[0]}: "
            "use the settings of the service"
        )
    return Secrets(keys, _key_files(settings.data_dir / "keys"), mac_key, dump_key)


def require_all_keys(settings: Settings, secrets: Secrets) -> None:
    """Raises BackupError if a master key was added since ``new_secrets``: the copied values may need it."""
    if secrets.master_keys and not set(master_keys(settings)) <= set(secrets.master_keys):
        raise BackupError("the master key was changed while the backup was made: make the backup again")


def _key_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.pem"))} if folder.is_dir() else {}
