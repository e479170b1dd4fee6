"""Secrets at rest that must be read back: AES-GCM under the master key.

A sealed value is ``v1.<key id>.<base64url of nonce and ciphertext>``. Its purpose (which column of which row) is
authenticated with it, so that a value copied to another place does not open there.
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

KEY_BYTES = 32
NONCE_BYTES = 12


class SealError(Exception):
    """One line that says what is wrong with the master key or a sealed value."""


class MasterKey:
    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_BYTES:
            raise SealError(f"a master key has {KEY_BYTES} bytes, not {len(raw)}")
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
        except (ValueError, SealError):
            raise SealError("a master key is 32 bytes in base64url, as `sso key master` prints one") from None

    def mac(self, purpose: str, text: str) -> bytes:
        return hmac.digest(self._mac_key, f"{len(purpose)}:{purpose}{text}".encode(), hashlib.sha256)

    def text(self) -> str:
        return base64.urlsafe_b64encode(self.raw).decode().rstrip("=")


class Keyring:
    """The first key seals; all of them open, so that a change of the master key needs no pause."""

    def __init__(self, keys: Sequence[MasterKey], source: Path | None = None) -> None:
        if not keys:
            raise SealError("there is no master key")
        self.keys = tuple(keys)
        self.source = source
        self._seen: tuple[int, int, int] | None = None  # the state of the file when it was read

    @classmethod
    def from_text(cls, text: str) -> "Keyring":
        return cls([MasterKey.parse(part) for part in text.split(",") if part.strip()])

    @classmethod
    def from_file(cls, path: Path) -> "Keyring":
        return cls(_read_key_file(path), path)

    @classmethod
    def open_or_create(cls, path: Path) -> "Keyring":
        """The key file of the data directory; made at the first start, safe when two processes start at once."""
        try:
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write_new(path, MasterKey.generate().text() + "\n")
        except OSError as error:
            raise SealError(f"cannot write the master key file {path}: {error.strerror}") from None
        return cls.from_file(path)

    def seal(self, purpose: str, secret: str) -> str:
        self._follow_file()  # what is sealed with an old key would not open any more once that key is dropped
        key = self.keys[0]
        nonce = os.urandom(NONCE_BYTES)
        box = nonce + key.cipher.encrypt(nonce, secret.encode(), purpose.encode())
        return f"v1.{key.id}.{base64.urlsafe_b64encode(box).decode()}"

    def open(self, purpose: str, sealed: str) -> str:
        version, key_id, box = _parts(sealed)
        if version != "v1":
            raise SealError("a sealed value has an unknown version")
        key = self._key(key_id)
        try:
            raw = base64.urlsafe_b64decode(box)
            return key.cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], purpose.encode()).decode()
        except (InvalidTag, ValueError):
            raise SealError(f"a sealed value ({purpose}) does not open: it was changed or belongs elsewhere") from None

    def mac(self, purpose: str, text: str) -> bytes:
        """Returns an HMAC-SHA256 under a key derived from the first master key, for values too short for a digest."""
        self._follow_file()
        return self.keys[0].mac(purpose, text)

    def is_mac(self, mac: bytes, purpose: str, text: str) -> bool:
        """Returns True if ``mac`` was made for this purpose and text, with any master key of the ring."""
        self._follow_file()
        return any(hmac.compare_digest(mac, key.mac(purpose, text)) for key in self.keys)

    def _follow_file(self) -> None:
        if _stamp(self.source) != self._seen:
            self.reload()

    def _key(self, key_id: str) -> MasterKey:
        for _ in range(2):
            for key in self.keys:
                if key.id == key_id:
                    return key
            if self.source is None:
                break
            self.reload()  # another process may have changed the master key while we were running
        raise SealError(f"a value is sealed with the master key {key_id}, which is not here")

    def reload(self) -> None:
        if self.source is not None:
            self._seen = _stamp(self.source)
            self.keys = tuple(_read_key_file(self.source))

    def put_first(self, key: MasterKey, *, instead_of: str = "") -> None:
        """Write a new first key to the file; the others stay, for what they have sealed.

        With ``instead_of``, the id of the first key as it was: SealError if another process has changed it meanwhile.
        """
        with self._alone():
            self.reload()
            if instead_of and self.keys[0].id != instead_of:
                raise SealError("the master key was changed meanwhile: try again")
            self._rewrite([key, *self.keys])

    def keep_only_first(self) -> None:
        with self._alone():
            first = self.keys[0].id
            self.reload()
            if self.keys[0].id != first:
                raise SealError("the master key was changed meanwhile: try again")
            self._rewrite(self.keys[:1])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change of the file at a time: a key that is lost takes with it what it has sealed."""
        if self.source is None:
            raise SealError("the master key comes from SSO_SECRET_KEY: change it there")
        try:
            folder = os.open(self.source.parent, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield
            finally:
                os.close(folder)
        except OSError as error:
            raise SealError(f"cannot write the master key file {self.source}: {error.strerror}") from None

    def _rewrite(self, keys: Sequence[MasterKey]) -> None:
        assert self.source is not None
        draft = _write_draft(self.source, "".join(key.text() + "\n" for key in keys))
        if os.geteuid() == 0:  # the service may run as somebody else, and must be able to read it
            owner = self.source.stat()
            os.chown(draft, owner.st_uid, owner.st_gid)
        draft.replace(self.source)
        self.reload()


def place(column: str, key: object) -> str:
    """The purpose of a value that is kept in a column of a row: ``place("users.totp_sealed", user_id)``."""
    return f"{column}:{key}"


def key_id_of(sealed: str) -> str:
    return _parts(sealed)[1]


def _parts(sealed: str) -> tuple[str, str, str]:
    match sealed.split("."):
        case [version, key_id, box]:
            return version, key_id, box
    raise SealError("a sealed value is damaged")


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Changes whenever the file does."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found else None


def _read_key_file(path: Path) -> list[MasterKey]:
    try:
        mode = path.stat().st_mode & 0o777
        lines = path.read_bytes().decode("ascii", "replace").splitlines()
    except OSError as error:
        raise SealError(f"cannot read the master key file {path}: {error.strerror}") from None
    if mode & 0o077:
        raise SealError(f"the master key file {path} is open to others (mode {mode:o}): chmod 600 it")
    try:
        keys = [MasterKey.parse(line) for line in lines if line.strip()]
    except SealError as error:
        raise SealError(f"the master key file {path} is damaged: {error}") from None
    if not keys:
        raise SealError(f"the master key file {path} is empty")
    return keys


def _write_new(path: Path, text: str) -> None:
    """Write the whole file or nothing; whoever comes second keeps what the first one wrote."""
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
