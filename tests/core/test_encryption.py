"""Secrets at rest: sealed under the master key, bound to their place, and the life of the key file."""

import base64
import multiprocessing
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from sso.core.encryption import Keyring, MasterKey, SealError, key_id_of, place

PLACE = place("users.totp_sealed", "12")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "secret.key"


def key_file(path: Path, *keys: MasterKey, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(key.text() + "\n" for key in keys))
    path.chmod(mode)
    return path


@pytest.mark.parametrize("secret", ["", "JBSWY3DPEHPK3PXP", "Ünï 🎮", "x" * 100_000, "a\0b\n"])
def test_what_is_sealed_opens_again(keyring: Keyring, secret: str) -> None:
    sealed = keyring.seal(PLACE, secret)
    assert keyring.open(PLACE, sealed) == secret
    assert key_id_of(sealed) == keyring.keys[0].id
    assert len(secret) < 3 or secret not in sealed


def test_the_same_secret_is_never_sealed_the_same_way_twice(keyring: Keyring) -> None:
    assert len({keyring.seal(PLACE, "secret") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "elsewhere", [place("users.totp_sealed", "13"), place("outbox.body_sealed", "12"), "", PLACE + " "]
)
def test_a_value_copied_to_another_place_does_not_open_there(keyring: Keyring, elsewhere: str) -> None:
    with pytest.raises(SealError, match="changed or belongs elsewhere"):
        keyring.open(elsewhere, keyring.seal(PLACE, "secret"))


def test_one_changed_bit_anywhere_is_noticed(keyring: Keyring) -> None:
    version, key_id, box = keyring.seal(PLACE, "secret").split(".")
    raw = base64.urlsafe_b64decode(box)
    for at in range(len(raw)):
        changed = bytearray(raw)
        changed[at] ^= 1
        with pytest.raises(SealError):
            keyring.open(PLACE, f"{version}.{key_id}.{base64.urlsafe_b64encode(changed).decode()}")


@pytest.mark.parametrize(
    "damaged",
    ["", "v1", "v1.{id}", "v2.{id}.{box}", "v1.{id}.{box}.x", "{id}.{box}", "v1.{id}.", "v1.{id}.A", "v1.{id}.AAAA",
     "v1.{id}.AAAAAAAAAAAAAAAA", "v1.{id}.é", "v1..{box}", "v1.000000000000.{box}"],
)  # fmt: skip
def test_a_damaged_value_is_a_seal_error(keyring: Keyring, damaged: str) -> None:
    _, key_id, box = keyring.seal(PLACE, "secret").split(".")
    with pytest.raises(SealError):
        keyring.open(PLACE, damaged.format(id=key_id, box=box))


def test_a_value_of_an_unknown_key_is_told_by_the_key_s_id(keyring: Keyring) -> None:
    other = Keyring([MasterKey.generate()])
    with pytest.raises(SealError, match=other.keys[0].id):
        keyring.open(PLACE, other.seal(PLACE, "secret"))


def test_the_first_of_several_keys_seals_and_all_of_them_open() -> None:
    new, old, older = (MasterKey.generate() for _ in range(3))
    ring = Keyring([new, old, older])
    assert key_id_of(ring.seal(PLACE, "secret")) == new.id
    for key in (new, old, older):
        assert ring.open(PLACE, Keyring([key]).seal(PLACE, "secret")) == "secret"


def test_several_keys_are_read_from_text_and_file(path: Path) -> None:
    new, old = MasterKey.generate(), MasterKey.generate()
    from_text = Keyring.from_text(f" {new.text()} , {old.text()},")
    from_file = Keyring.from_file(key_file(path, new, old))
    assert [key.id for key in from_text.keys] == [key.id for key in from_file.keys] == [new.id, old.id]


@pytest.mark.parametrize("padded", [True, False])
def test_a_master_key_is_read_back_from_its_text(padded: bool) -> None:
    key = MasterKey.generate()
    assert MasterKey.parse(key.text() + ("=" if padded else "") + "\n").raw == key.raw


@pytest.mark.parametrize("text", ["x", "password", "A" * 42, "A" * 44, "A" * 86, "é" * 43, "!" * 43])
def test_a_bad_master_key_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(SealError, match="32 bytes in base64url") as caught:
        Keyring.from_text(text)
    assert text == "x" or text not in str(caught.value)


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_no_master_key_at_all_is_refused(text: str) -> None:
    with pytest.raises(SealError, match="no master key"):
        Keyring.from_text(text)


def test_the_key_file_is_made_once_for_its_owner_only(path: Path) -> None:
    first = Keyring.open_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Keyring.open_or_create(path).keys[0].id == first.keys[0].id
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_key_file_open_to_others_is_refused_with_what_to_do(path: Path, mode: int) -> None:
    with pytest.raises(SealError, match=f"mode {mode:o}.*chmod 600"):
        Keyring.from_file(key_file(path, MasterKey.generate(), mode=mode))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"garbage\n", b"\xff\xfe\0", b"A" * 100, "é".encode() * 43])
def test_a_corrupt_key_file_is_refused_by_its_name(path: Path, content: bytes) -> None:
    key_file(path).write_bytes(content)
    with pytest.raises(SealError) as caught:
        Keyring.open_or_create(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content  # never written over: it may be all there is


def test_a_key_file_that_is_a_folder_or_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder", tmp_path / "file" / "secret.key"):
        with pytest.raises(SealError, match="the master key file"):
            Keyring.open_or_create(path)
    with pytest.raises(SealError, match="cannot read"):
        Keyring.from_file(tmp_path / "missing")


def test_threads_that_start_at_once_make_one_key(path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        rings = list(pool.map(lambda _: Keyring.open_or_create(path), range(64)))
    assert len({ring.keys[0].id for ring in rings}) == 1


def make_key(path: Path, start: Barrier, told: "multiprocessing.SimpleQueue[str]") -> None:
    start.wait(20)
    told.put(Keyring.open_or_create(path).keys[0].id)


def test_processes_that_start_at_once_make_one_key(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    for round_number in range(10):
        path = tmp_path / str(round_number) / "secret.key"
        start, told = fork.Barrier(4), fork.SimpleQueue()
        children = [fork.Process(target=make_key, args=(path, start, told)) for _ in range(4)]
        for child in children:
            child.start()
        ids = {told.get() for _ in children}
        for child in children:
            child.join(20)
        assert len(ids) == 1


def test_a_key_that_another_process_added_is_read_when_it_is_first_met(path: Path) -> None:
    here, there = Keyring.open_or_create(path), Keyring.open_or_create(path)
    there.put_first(MasterKey.generate())
    sealed = there.seal(PLACE, "secret")
    assert key_id_of(sealed) not in [key.id for key in here.keys]
    assert here.open(PLACE, sealed) == "secret"


def test_a_running_process_seals_with_the_new_key_from_its_change_on(path: Path) -> None:
    """Otherwise it would go on sealing with one that the next command forgets."""
    here, there = Keyring.open_or_create(path), Keyring.open_or_create(path)
    here.seal(PLACE, "before")
    there.put_first(MasterKey.generate())
    there.keep_only_first()
    assert Keyring.from_file(path).open(PLACE, here.seal(PLACE, "after")) == "after"


def test_the_file_is_not_read_again_and_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Keyring.open_or_create(path)
    ring.seal(PLACE, "secret")
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read again"))
    for _ in range(10):
        assert ring.open(PLACE, ring.seal(PLACE, "secret")) == "secret"


def test_a_new_first_key_keeps_the_others_until_they_are_dropped(path: Path) -> None:
    ring = Keyring.open_or_create(path)
    old = ring.seal(PLACE, "secret")
    ring.put_first(MasterKey.generate())
    assert len(Keyring.from_file(path).keys) == 2
    assert Keyring.from_file(path).open(PLACE, old) == "secret"
    ring.keep_only_first()
    assert [key.id for key in Keyring.from_file(path).keys] == [ring.keys[0].id]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with pytest.raises(SealError, match="not here"):
        ring.open(PLACE, old)


def test_changes_at_once_lose_no_key(path: Path) -> None:
    first = Keyring.open_or_create(path).keys[0]
    rings = [Keyring.open_or_create(path) for _ in range(16)]
    keys = [MasterKey.generate() for _ in rings]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(Keyring.put_first, rings, keys))
    found = [key.id for key in Keyring.from_file(path).keys]
    assert len(found) == 17
    assert set(found) == {key.id for key in keys} | {first.id}
    assert found[-1] == first.id


def test_old_keys_are_not_dropped_for_a_first_one_that_is_no_longer_first(path: Path) -> None:
    here, there = Keyring.open_or_create(path), Keyring.open_or_create(path)
    there.put_first(MasterKey.generate())
    with pytest.raises(SealError, match="changed meanwhile"):
        here.keep_only_first()
    assert len(Keyring.from_file(path).keys) == 2


def test_a_key_from_the_settings_is_changed_there(keyring: Keyring) -> None:
    with pytest.raises(SealError, match="SSO_SECRET_KEY"):
        keyring.put_first(MasterKey.generate())
    with pytest.raises(SealError, match="SSO_SECRET_KEY"):
        keyring.keep_only_first()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_change_by_root_leaves_the_file_to_its_owner(path: Path) -> None:
    ring = Keyring.open_or_create(path)
    os.chown(path, 12345, 12345)
    ring.put_first(MasterKey.generate())
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)
