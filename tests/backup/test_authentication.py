"""The passphrase authenticates a whole backup: one that was changed is refused before anything is restored."""

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sso.backup import BackupError, chunk_encryption
from sso.backup import secrets as backup_secrets
from sso.backup.archive import new_file, write_archive
from sso.backup.archive_reader import open_archive
from sso.backup.chunk_encryption import CHUNK_BYTES, TAG_BYTES, DamagedStream, decrypt_stream, encrypt_stream
from sso.backup.manifest import Manifest
from sso.backup.secrets import Secrets
from tests.backup.archives import members, rewritten

PASSPHRASE = "correct horse battery"
DUMP = b"PGDMP and %d bytes more" * 100_000
MEGABYTE = 1 << 20
Change = Callable[[Path, Path], Path]


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backup_secrets.SCRYPT, "n", 2**4)


def written(path: Path, *, dump: bytes = DUMP, encrypted: bool = False, protected: bool = True) -> Path:
    manifest = Manifest("1.0", "0001", "18.0", "2026-11-15T12:00:00+00:00", has_keys=protected, encrypted=encrypted)
    dump_key = chunk_encryption.new_key().hex() if encrypted else ""
    secrets = Secrets(["a master key"], {}, chunk_encryption.new_key().hex(), dump_key)
    with new_file(path) as file:
        write_archive(file, manifest, (secrets, PASSPHRASE) if protected else None, iter([dump]), lambda _: None)
    return path


def of_format_1(path: Path, dump: bytes = DUMP) -> Path:
    """An archive as earlier versions wrote it."""
    archive = written(path.with_suffix(".new"), dump=dump)
    manifest = json.loads(members(archive)["manifest.json"]) | {"format": 1}
    del manifest["encrypted"]
    secrets = {"master_keys": ["a master key"], "key_files": {}}
    changes = {
        "manifest.json": json.dumps(manifest).encode(),
        "secrets.enc": backup_secrets.encrypt(PASSPHRASE, json.dumps(secrets).encode()),
        "database.sha256": b"",
        "digests.json": None,
        "digests.mac": None,
    }
    return rewritten(archive, path, changes)


def restored(path: Path, *, unauthenticated: bool = False) -> bytes:
    ignore = lambda _done, _total: None  # noqa: E731
    with open_archive(path, lambda: PASSPHRASE, ignore, unauthenticated=unauthenticated) as archive:
        return b"".join(archive.dump(ignore))


@pytest.mark.parametrize("encrypted", [False, True])
def test_unchanged_backup_is_read(tmp_path: Path, encrypted: bool) -> None:
    path = written(tmp_path / "a", encrypted=encrypted)
    assert (b"PGDMP" in path.read_bytes()) != encrypted
    assert restored(path) == DUMP


def spliced_dump(path: Path, target: Path) -> Path:
    other = written(target.with_suffix(".other"), dump=b"PGDMP of another backup")
    return rewritten(path, target, {"database.dump": members(other)["database.dump"]})


def spliced_manifest(path: Path, target: Path) -> Path:
    manifest = json.loads(members(path)["manifest.json"]) | {"schema": "0000"}
    return rewritten(path, target, {"manifest.json": json.dumps(manifest).encode()})


def without_code(path: Path, target: Path) -> Path:
    return rewritten(path, target, {"database.dump": b"PGDMP", "digests.mac": None})


def turned_into_format_1(path: Path, target: Path) -> Path:
    """The original digests and their code stay, and the dump has a digest as in the old format."""
    content = members(path)
    manifest = json.loads(content["manifest.json"]) | {"format": 1}
    dump = b"PGDMP"
    content |= {
        "manifest.json": json.dumps(manifest).encode(),
        "database.dump": dump,
        "database.sha256": hashlib.sha256(dump).hexdigest().encode(),
    }
    return packed(content, target)


def digests_removed(path: Path, target: Path) -> Path:
    archive = turned_into_format_1(path, target.with_suffix(".step"))
    return rewritten(archive, target, {"digests.json": None, "digests.mac": None})


def second_dump(path: Path, target: Path) -> Path:
    with path.open("rb") as source:
        data = source.read()[: -2 * tarfile.BLOCKSIZE]
    extra = packed({"database.dump": b"PGDMP"}, target.with_suffix(".extra")).read_bytes()
    target.write_bytes(data + extra)
    return target


def packed(content: dict[str, bytes], target: Path) -> Path:
    empty = target.with_suffix(".empty")
    with tarfile.open(empty, "w"):
        pass
    kept = {name: data for name, data in content.items() if not name.startswith(("digests.", "database.sha"))}
    archive = rewritten(empty, target, kept)
    with tarfile.open(archive, "a", format=tarfile.GNU_FORMAT) as tar:
        for name in content.keys() - kept.keys():
            part = target.with_suffix(".part")
            part.write_bytes(content[name])
            tar.add(part, name)
    return archive


CHANGES = [spliced_dump, spliced_manifest, without_code, turned_into_format_1, digests_removed, second_dump]


@pytest.mark.parametrize("unauthenticated", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_changed_backup_is_refused(tmp_path: Path, change: Change, unauthenticated: bool) -> None:
    path = change(written(tmp_path / "a"), tmp_path / "b")
    with pytest.raises(BackupError, match=r"was changed|is damaged|is not a backup"):
        restored(path, unauthenticated=unauthenticated)


def test_backup_of_an_earlier_version_needs_consent(tmp_path: Path) -> None:
    """Otherwise, the keys of an old backup would let any dump pass."""
    path = of_format_1(tmp_path / "old")
    with pytest.raises(BackupError, match="--unauthenticated"):
        restored(path)
    assert restored(path, unauthenticated=True) == DUMP


def test_backup_without_secrets_needs_consent(tmp_path: Path) -> None:
    path = written(tmp_path / "plain", protected=False)
    with pytest.raises(BackupError, match="--unauthenticated"):
        restored(path)
    assert restored(path, unauthenticated=True) == DUMP


@pytest.mark.parametrize("old_format", [False, True])
@pytest.mark.parametrize("place", [100_000, MEGABYTE + 100_000, len(DUMP) - 1])
def test_piece_of_a_dump_that_changes_after_the_check_is_not_handed_over(
    tmp_path: Path, place: int, old_format: bool
) -> None:
    path = of_format_1(tmp_path / "a") if old_format else written(tmp_path / "a")
    start = path.read_bytes().index(DUMP)
    with open_archive(path, lambda: PASSPHRASE, lambda _done, _total: None, unauthenticated=old_format) as archive:
        with path.open("r+b") as file:
            file.seek(start + place)
            file.write(b"\0")
        received: list[bytes] = []
        with pytest.raises(BackupError, match="digest of database"):
            received.extend(archive.dump(lambda _done, _total: None))
    assert b"".join(received) == DUMP[: place // MEGABYTE * MEGABYTE]


def test_manifest_that_is_used_is_the_one_that_is_compared(tmp_path: Path) -> None:
    """The file changes back to the authentic one between the two."""
    path = written(tmp_path / "a")
    authentic = path.read_bytes()

    def passphrase_later() -> str:
        path.write_bytes(authentic)
        return PASSPHRASE

    path.write_bytes(authentic.replace(b'"schema": "0001"', b'"schema": "0000"'))
    with (
        pytest.raises(BackupError, match=r"digest of manifest\.json"),
        open_archive(path, passphrase_later, lambda _done, _total: None),
    ):
        pass


def test_chunks_of_a_stream_cannot_be_moved_cut_or_mixed() -> None:
    key, size = chunk_encryption.new_key(), CHUNK_BYTES + TAG_BYTES
    plaintext = bytes(2 * CHUNK_BYTES) + b"the end"
    stream = b"".join(encrypt_stream(key, [plaintext]))
    first, second, last = stream[:size], stream[size : 2 * size], stream[2 * size :]
    assert b"".join(decrypt_stream(key, [stream[:100], stream[100:]])) == plaintext
    other = b"".join(encrypt_stream(chunk_encryption.new_key(), [plaintext]))
    for changed in (second + first + last, first + last, first + second, first, b"", other[:size] + second + last):
        with pytest.raises(DamagedStream):
            list(decrypt_stream(key, [changed]))
