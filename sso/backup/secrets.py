"""What a backup encrypts with its passphrase: the keys of the service, and those that protect the backup itself."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sso.backup import chunk_encryption
from sso.backup.errors import BackupError
from sso.backup.passphrase import WrongPassphrase, decrypt, encrypt
from sso.config import Settings
from sso.core.encryption import Keyring

SECRETS = "secrets.enc"


@dataclass(frozen=True)
class Secrets:
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


def new_secrets(settings: Settings, *, with_keys: bool, encrypt_dump: bool) -> Secrets:
    """The keys of the service, unless they are left out, and new keys for one backup."""
    mac_key = chunk_encryption.new_key().hex()
    dump_key = chunk_encryption.new_key().hex() if encrypt_dump else ""
    if not with_keys:
        return Secrets([], {}, mac_key, dump_key)
    return Secrets(_master_keys(settings), _key_files(settings.data_dir / "keys"), mac_key, dump_key)


def _master_keys(settings: Settings) -> list[str]:
    if settings.secret_key is not None:
        keyring = Keyring.from_text(settings.secret_key.get_secret_value())
    else:
        keyring = Keyring.from_file(settings.key_file)
    return [key.text() for key in keyring.keys]


def _key_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.pem"))} if folder.is_dir() else {}
