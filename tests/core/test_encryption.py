"""Encryption at rest, and the file of master keys."""

import base64
import multiprocessing
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from sso.core.encryption import EncryptionError, Keyring, MasterKey, column_purpose, key_id_of

PURPOSE = column_purpose("users.totp_sealed", "12")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "secret.key"


def key_file(path: Path, *keys: MasterKey, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(key.text() + "\n" for key in keys))
    path.chmod(mode)
    return path


@pytest.mark.parametrize("secret", ["", "JBSWY3DPEHPK3PXP", "Ünï 🎮", "x" * 100_000, "a\0b\n"])
def test_encrypted_secret_is_decrypted(keyring: Keyring, secret: str) -> None:
    sealed = keyring.encrypt(PURPOSE, secret)
    assert keyring.decrypt(PURPOSE, sealed) == secret
    assert key_id_of(sealed) == keyring.keys[0].id
    assert len(secret) < 3 or secret not in sealed


def test_same_secret_is_encrypted_differently_each_time(keyring: Keyring) -> None:
    assert len({keyring.encrypt(PURPOSE, "secret") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "purpose",
    [column_purpose("users.totp_sealed", "13"), column_purpose("outbox.body_sealed", "12"), "", PURPOSE + " "],
)
def test_value_copied_to_another_row_is_not_decrypted(keyring: Keyring, purpose: str) -> None:
    with pytest.raises(EncryptionError, match="cannot be decrypted"):
        keyring.decrypt(purpose, keyring.encrypt(PURPOSE, "secret"))


def test_any_changed_bit_is_detected(keyring: Keyring) -> None:
    version, key_id, box = keyring.encrypt(PURPOSE, "secret").split(".")
    raw = base64.urlsafe_b64decode(box)
    for index in range(len(raw)):
        changed = bytearray(raw)
        changed[index] ^= 1
        with pytest.raises(EncryptionError):
            keyring.decrypt(PURPOSE, f"{version}.{key_id}.{base64.urlsafe_b64encode(changed).decode()}")


@pytest.mark.parametrize(
    "damaged",
    ["", "v1", "v1.{id}", "v2.{id}.{box}", "v1.{id}.{box}.x", "{id}.{box}", "v1.{id}.", "v1.{id}.A", "v1.{id}.AAAA",
     "v1.{id}.AAAAAAAAAAAAAAAA", "v1.{id}.é", "v1..{box}", "v1.000000000000.{box}"],
)  # fmt: skip
def test_damaged_value_raises_encryption_error(keyring: Keyring, damaged: str) -> None:
    _, key_id, box = keyring.encrypt(PURPOSE, "secret").split(".")
    with pytest.raises(EncryptionError):
        keyring.decrypt(PURPOSE, damaged.format(id=key_id, box=box))


def test_error_of_a_missing_key_names_its_id(keyring: Keyring) -> None:
    other = Keyring([MasterKey.generate()])
    with pytest.raises(EncryptionError, match=other.keys[0].id):
        keyring.decrypt(PURPOSE, other.encrypt(PURPOSE, "secret"))


def test_first_key_encrypts_and_all_keys_decrypt() -> None:
    new, old, older = (MasterKey.generate() for _ in range(3))
    ring = Keyring([new, old, older])
    assert key_id_of(ring.encrypt(PURPOSE, "secret")) == new.id
    for key in (new, old, older):
        assert ring.decrypt(PURPOSE, Keyring([key]).encrypt(PURPOSE, "secret")) == "secret"


def test_several_keys_are_read_from_text_and_file(path: Path) -> None:
    new, old = MasterKey.generate(), MasterKey.generate()
    from_text = Keyring.from_text(f" {new.text()} , {old.text()},")
    from_file = Keyring.from_file(key_file(path, new, old))
    assert [key.id for key in from_text.keys] == [key.id for key in from_file.keys] == [new.id, old.id]


@pytest.mark.parametrize("padded", [True, False])
def test_master_key_is_parsed_from_its_text(padded: bool) -> None:
    key = MasterKey.generate()
    assert MasterKey.parse(key.text() + ("=" if padded else "") + "\n").raw == key.raw


@pytest.mark.parametrize("text", ["x", "password", "A" * 42, "A" * 44, "A" * 86, "é" * 43, "!" * 43])
def test_error_of_an_invalid_master_key_does_not_quote_it(text: str) -> None:
    with pytest.raises(EncryptionError, match="32 bytes in base64url") as caught:
        Keyring.from_text(text)
    assert text == "x" or text not in str(caught.value)


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_empty_list_of_master_keys_is_rejected(text: str) -> None:
    with pytest.raises(EncryptionError, match="no master key"):
        Keyring.from_text(text)


def test_key_file_is_created_once_and_private(path: Path) -> None:
    first = Keyring.open_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Keyring.open_or_create(path).keys[0].id == first.keys[0].id
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666, 0o601])
def test_key_file_readable_by_others_is_rejected(path: Path, mode: int) -> None:
    with pytest.raises(EncryptionError, match=f"mode {mode:o}.*chmod 600"):
        Keyring.from_file(key_file(path, MasterKey.generate(), mode=mode))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"garbage\n", b"\xff\xfe\0", b"A" * 100, "é".encode() * 43])
def test_error_of_a_corrupt_key_file_names_it_and_leaves_it_unchanged(path: Path, content: bytes) -> None:
    key_file(path).write_bytes(content)
    with pytest.raises(EncryptionError) as caught:
        Keyring.open_or_create(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_key_file_that_cannot_be_read_or_created_raises_encryption_error(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "directory", tmp_path / "file" / "secret.key"):
        with pytest.raises(EncryptionError, match="the master key file"):
            Keyring.open_or_create(path)
    with pytest.raises(EncryptionError, match="cannot read"):
        Keyring.from_file(tmp_path / "missing")


def test_concurrent_threads_create_one_key(path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        rings = list(pool.map(lambda _: Keyring.open_or_create(path), range(64)))
    assert len({ring.keys[0].id for ring in rings}) == 1


def create_keys(paths: list[Path], start: Barrier, ids: "multiprocessing.SimpleQueue[tuple[Path, str]]") -> None:
    for path in paths:
        start.wait(120)
        ids.put((path, Keyring.open_or_create(path).keys[0].id))


def test_concurrent_processes_create_one_key(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    paths = [tmp_path / str(number) / "secret.key" for number in range(10)]
    start, queue = fork.Barrier(4), fork.SimpleQueue()
    children = [fork.Process(target=create_keys, args=(paths, start, queue)) for _ in range(4)]
    for child in children:
        child.start()
    ids = {queue.get() for _ in range(len(children) * len(paths))}
    for child in children:
        child.join(120)
    assert sorted(path for path, _ in ids) == paths  # each has one id


def test_key_that_another_process_added_is_read_when_it_is_needed(path: Path) -> None:
    ring, other = Keyring.open_or_create(path), Keyring.open_or_create(path)
    other.add_first(MasterKey.generate())
    sealed = other.encrypt(PURPOSE, "secret")
    assert key_id_of(sealed) not in [key.id for key in ring.keys]
    assert ring.decrypt(PURPOSE, sealed) == "secret"


def test_running_process_encrypts_with_the_key_that_another_process_added(path: Path) -> None:
    """Otherwise it would encrypt with a key that the next command drops."""
    ring, other = Keyring.open_or_create(path), Keyring.open_or_create(path)
    ring.encrypt(PURPOSE, "before")
    other.add_first(MasterKey.generate())
    other.keep_only_first()
    assert Keyring.from_file(path).decrypt(PURPOSE, ring.encrypt(PURPOSE, "after")) == "after"


def test_unchanged_key_file_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Keyring.open_or_create(path)
    ring.encrypt(PURPOSE, "secret")
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read again"))
    for _ in range(10):
        assert ring.decrypt(PURPOSE, ring.encrypt(PURPOSE, "secret")) == "secret"


def test_other_keys_are_kept_until_they_are_dropped(path: Path) -> None:
    ring = Keyring.open_or_create(path)
    old = ring.encrypt(PURPOSE, "secret")
    ring.add_first(MasterKey.generate())
    assert len(Keyring.from_file(path).keys) == 2
    assert Keyring.from_file(path).decrypt(PURPOSE, old) == "secret"
    ring.keep_only_first()
    assert [key.id for key in Keyring.from_file(path).keys] == [ring.keys[0].id]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with pytest.raises(EncryptionError, match="is missing"):
        ring.decrypt(PURPOSE, old)


def test_concurrent_changes_lose_no_key(path: Path) -> None:
    first = Keyring.open_or_create(path).keys[0]
    rings = [Keyring.open_or_create(path) for _ in range(16)]
    keys = [MasterKey.generate() for _ in rings]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(Keyring.add_first, rings, keys))
    ids = [key.id for key in Keyring.from_file(path).keys]
    assert len(ids) == 17
    assert set(ids) == {key.id for key in keys} | {first.id}
    assert ids[-1] == first.id


def test_keys_are_not_dropped_if_another_process_added_a_key(path: Path) -> None:
    ring, other = Keyring.open_or_create(path), Keyring.open_or_create(path)
    other.add_first(MasterKey.generate())
    with pytest.raises(EncryptionError, match="changed by another process"):
        ring.keep_only_first()
    assert len(Keyring.from_file(path).keys) == 2


def test_key_from_the_settings_cannot_be_changed(keyring: Keyring) -> None:
    with pytest.raises(EncryptionError, match="SSO_SECRET_KEY"):
        keyring.add_first(MasterKey.generate())
    with pytest.raises(EncryptionError, match="SSO_SECRET_KEY"):
        keyring.keep_only_first()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a file")
def test_change_by_root_keeps_the_owner_of_the_file(path: Path) -> None:
    ring = Keyring.open_or_create(path)
    os.chown(path, 12345, 12345)
    ring.add_first(MasterKey.generate())
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)
