"""Encryption at rest, with AES-GCM and the master key, for secrets that must be read back.

A sealed (encrypted) value is ``v1.<key id>.<base64url of nonce and ciphertext>``. Its purpose, the column and row it is
stored in, is authenticated with it, so a value that is copied to another row cannot be decrypted there.
"""

import base64
import fcntl
import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sso.core.errors import OperatorError

KEY_BYTES = 32
NONCE_BYTES = 12


class EncryptionError(OperatorError):
    """The master key or a sealed value is invalid."""


class MasterKey:
    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_BYTES:
            raise EncryptionError(f"expected a master key of {KEY_BYTES} bytes, not {len(raw)}")
        self.raw = raw
        self.id = hashlib.sha256(b"sso master key" + raw).hexdigest()[:12]
        self.cipher = AESGCM(raw)
        self._mac_key = hmac.digest(raw, b"sso message authentication", hashlib.sha256)

    @classmethod
    def generate(cls) -> "MasterKey":
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def parse(cls, text: str) -> "MasterKey":
        try:
            return cls(base64.b64decode(text.strip() + "=" * (-len(text.strip()) % 4), altchars=b"-_", validate=True))
        except (ValueError, EncryptionError):
            raise EncryptionError(
                "expected a master key: 32 bytes in base64url, as printed by `sso key master`"
            ) from None

    def mac(self, purpose: str, text: str) -> bytes:
        return hmac.digest(self._mac_key, f"{len(purpose)}:{purpose}{text}".encode(), hashlib.sha256)

    def text(self) -> str:
        return base64.urlsafe_b64encode(self.raw).decode().rstrip("=")


class Keyring:
    """The first key encrypts, and all keys decrypt, so the master key can be changed without downtime."""

    def __init__(self, keys: Sequence[MasterKey], source: Path | None = None) -> None:
        if not keys:
            raise EncryptionError("there is no master key")
        self.keys = tuple(keys)
        self.source = source
        self._file_version: tuple[int, int, int] | None = None  # the version of the file that was read

    @classmethod
    def from_text(cls, text: str) -> "Keyring":
        return cls([MasterKey.parse(part) for part in text.split(",") if part.strip()])

    @classmethod
    def from_file(cls, path: Path) -> "Keyring":
        return cls(_read_key_file(path), path)

    @classmethod
    def open_or_create(cls, path: Path) -> "Keyring":
        """Returns the keyring of a key file. Creates the file if it does not exist; concurrent calls are safe."""
        try:
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write_new(path, MasterKey.generate().text() + "\n")
        except OSError as error:
            raise EncryptionError(f"cannot write the master key file {path}: {error.strerror}") from None
        return cls.from_file(path)

    def encrypt(self, purpose: str, secret: str) -> str:
        self._reload_if_changed()  # an old key may be removed soon; its values could not be decrypted afterwards
        key = self.keys[0]
        nonce = os.urandom(NONCE_BYTES)
        box = nonce + key.cipher.encrypt(nonce, secret.encode(), purpose.encode())
        return f"v1.{key.id}.{base64.urlsafe_b64encode(box).decode()}"

    def decrypt(self, purpose: str, sealed: str) -> str:
        version, key_id, box = _parts(sealed)
        if version != "v1":
            raise EncryptionError("sealed value: unknown version")
        key = self._key(key_id)
        try:
            raw = base64.urlsafe_b64decode(box)
            return key.cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], purpose.encode()).decode()
        except (InvalidTag, ValueError):
            raise EncryptionError(
                f"sealed value of {purpose}: cannot be decrypted, it was changed or belongs to another row"
            ) from None

    def mac(self, purpose: str, text: str) -> bytes:
        """Returns an HMAC-SHA256 with a key derived from the first master key.

        It is for values so short that they could be guessed from a plain digest.
        """
        return self.macs(purpose, text)[0]

    def macs(self, purpose: str, text: str) -> list[bytes]:
        """Returns the MACs with all keys of the ring, the first key first. Another node may have another first key."""
        self._reload_if_changed()
        return [key.mac(purpose, text) for key in self.keys]

    def verify_mac(self, mac: bytes, purpose: str, text: str) -> bool:
        """Returns whether ``mac`` was computed for this purpose and text with any key of the ring."""
        self._reload_if_changed()
        return any(hmac.compare_digest(mac, key.mac(purpose, text)) for key in self.keys)

    def _reload_if_changed(self) -> None:
        if _file_version(self.source) != self._file_version:
            self.reload()

    def _key(self, key_id: str) -> MasterKey:
        for _ in range(2):
            for key in self.keys:
                if key.id == key_id:
                    return key
            if self.source is None:
                break
            self.reload()  # another process may have changed the master key
        known = ", ".join(key.id for key in self.keys)
        raise EncryptionError(
            f"sealed value: master key {key_id} is missing in {self.source or 'SSO_SECRET_KEY'}, which has {known}: "
            "add it after the first key, or restore it from a backup"
        )

    def reload(self) -> None:
        if self.source is not None:
            self._file_version = _file_version(self.source)
            self.keys = tuple(_read_key_file(self.source))

    def add_first(self, key: MasterKey, *, expected_first_id: str = "") -> None:
        """Adds a new first key to the file. The other keys stay, for the values that they have encrypted.

        Raises EncryptionError if ``expected_first_id`` is given and another process has changed the first key.
        """
        with self._file_lock():
            self.reload()
            if expected_first_id and self.keys[0].id != expected_first_id:
                raise EncryptionError("the master key was changed by another process: try again")
            self._rewrite([key, *self.keys])

    def replace(self, keys: Sequence[MasterKey]) -> None:
        """Writes other keys to the file."""
        with self._file_lock():
            self._rewrite(keys)

    def keep_only_first(self) -> None:
        with self._file_lock():
            first = self.keys[0].id
            self.reload()
            if self.keys[0].id != first:
                raise EncryptionError("the master key was changed by another process: try again")
            self._rewrite(self.keys[:1])

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        """Serialises changes of the file: a lost key would make the values that it has encrypted unreadable."""
        if self.source is None:
            raise EncryptionError("the master key comes from SSO_SECRET_KEY: change it there")
        try:
            directory = os.open(self.source.parent, os.O_RDONLY)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
                yield
            finally:
                os.close(directory)
        except OSError as error:
            raise EncryptionError(f"cannot write the master key file {self.source}: {error.strerror}") from None

    def _rewrite(self, keys: Sequence[MasterKey]) -> None:
        assert self.source is not None
        draft = _write_draft(self.source, "".join(key.text() + "\n" for key in keys))
        if os.geteuid() == 0:  # the service may run as another user and must be able to read it
            owner = self.source.stat()
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.replace(self.source)
        self.reload()


def column_purpose(column: str, key: object) -> str:
    """Returns the purpose of a value in a column of a row: ``column_purpose("users.totp_sealed", user_id)``."""
    return f"{column}:{key}"


def key_id_of(sealed: str) -> str:
    return _parts(sealed)[1]


def _parts(sealed: str) -> tuple[str, str, str]:
    match sealed.split("."):
        case [version, key_id, box]:
            return version, key_id, box
    raise EncryptionError("sealed value: expected three parts")


def _file_version(path: Path | None) -> tuple[int, int, int] | None:
    """Returns a value that changes with the file."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if status else None


def _read_key_file(path: Path) -> list[MasterKey]:
    try:
        mode = path.stat().st_mode & 0o777
        lines = path.read_bytes().decode("ascii", "replace").splitlines()
    except OSError as error:
        raise EncryptionError(f"cannot read the master key file {path}: {error.strerror}") from None
    if mode & 0o077:
        raise EncryptionError(f"the master key file {path} can be read by other users (mode {mode:o}): chmod 600 it")
    try:
        keys = [MasterKey.parse(line) for line in lines if line.strip()]
    except EncryptionError as error:
        raise EncryptionError(f"the master key file {path} is damaged: {error}") from None
    if not keys:
        raise EncryptionError(f"the master key file {path} is empty")
    return keys


def _write_new(path: Path, text: str) -> None:
    """Creates the file atomically. An existing file is not changed."""
    draft = _write_draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _write_draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft
