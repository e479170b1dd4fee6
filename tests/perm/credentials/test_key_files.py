"""Key files of applications: only small regular files are read, in a thread, and only when they change."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sso.core.keys import GENERATE, key_id, public_pem
from sso.perm.credentials import key_files
from sso.perm.credentials.key_files import MAX_BYTES, REFRESH_S, KeyFiles

FIRST, SECOND = (GENERATE["EdDSA"]().public_key() for _ in range(2))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def store(folder: Path, name: str, key: Any = FIRST) -> Path:
    file = folder / name
    file.write_text(public_pem(key))
    return file


async def ids(files: KeyFiles, key: Any) -> list[int]:
    return [file_key.application_id for file_key in await files.find_by_id(key_id(key))]


async def test_changed_key_file_is_read_again(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path)
    assert await files.find(10) is None
    file = store(tmp_path, "10.pem")
    file_key = await files.find(10)
    assert file_key is not None
    assert (file_key.id, file_key.pem) == (key_id(FIRST), public_pem(FIRST))
    store(tmp_path, "10.pem", SECOND)
    os.utime(file, ns=(1, 1))
    file_key = await files.find(10)
    assert file_key is not None
    assert file_key.id == key_id(SECOND)
    file.unlink()
    assert await files.find(10) is None


async def test_keys_are_found_by_id_after_the_folder_changes(tmp_path: Path) -> None:
    clock = Clock()
    files = KeyFiles(tmp_path, clock)
    for name in ("10.pem", "9.pem", "010.pem", "x.pem", "11.txt"):
        store(tmp_path, name)
    assert await ids(files, FIRST) == [9, 10]
    store(tmp_path, "12.pem", SECOND)
    (tmp_path / "9.pem").unlink()
    os.utime(tmp_path, ns=(1, 1))
    assert (await ids(files, FIRST), await ids(files, SECOND)) == ([10], [12])
    store(tmp_path, "10.pem", SECOND)  # in place: the folder has not changed
    assert await ids(files, SECOND) == [12]
    clock.now += REFRESH_S
    assert (await ids(files, FIRST), await ids(files, SECOND)) == ([], [10, 12])


async def test_requests_for_unknown_keys_scan_the_folder_once_per_refresh_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[int] = []
    iterdir = Path.iterdir

    def counted(path: Path) -> Iterator[Path]:
        scans.append(threading.get_ident())
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", counted)
    store(tmp_path, "10.pem")
    clock = Clock()
    files = KeyFiles(tmp_path, clock)
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(files.find_by_id, "unknown")
    assert len(scans) == 1
    clock.now += REFRESH_S
    await files.find_by_id("unknown")
    assert len(scans) == 2
    assert threading.get_ident() not in scans


async def test_unchanged_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []
    content = key_files._content

    def counted(path: Path) -> str:
        reads.append(path)
        return content(path)

    monkeypatch.setattr(key_files, "_content", counted)
    store(tmp_path, "10.pem")
    (tmp_path / "11.pem").write_text("no key")
    clock = Clock()
    files = KeyFiles(tmp_path, clock)
    for _ in range(3):
        await files.find_by_id("unknown")
        assert await files.find(11) is None
        clock.now += REFRESH_S
    assert sorted(path.name for path in reads) == ["10.pem", "11.pem"]


@pytest.mark.timeout(30)
async def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    outside = store(tmp_path, "elsewhere")
    folder = tmp_path / "keys"
    folder.mkdir()
    os.mkfifo(folder / "10.pem")
    (folder / "11.pem").symlink_to(outside)
    (folder / "12.pem").mkdir()
    (folder / "13.pem").write_text(public_pem(FIRST) + " " * MAX_BYTES)
    (folder / "14.pem").write_bytes(b"\xff\xfe")
    store(folder, "15.pem")
    files = KeyFiles(folder)
    assert await ids(files, FIRST) == [15]
    for application_id in range(10, 15):
        assert await files.find(application_id) is None


@pytest.mark.timeout(30)
def test_reading_a_file_that_became_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "10.pem")
    (tmp_path / "11.pem").symlink_to(store(tmp_path, "12.pem"))
    for name in ("10.pem", "11.pem", "none.pem"):
        with pytest.raises(OSError):
            key_files._content(tmp_path / name)


async def test_missing_folder_has_no_keys(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path / "none")
    assert await files.find_by_id("x") == []
    assert await files.find(10) is None
