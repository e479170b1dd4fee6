"""Which timelines of a WAL archive a recovery follows."""

import gzip
from datetime import datetime
from pathlib import Path

import pytest

from sso.backup import BackupError
from sso.backup.timelines import check_complete, choose_timelines

EARLY, LATE = datetime.fromisoformat("2026-11-15 11:00:00+00"), datetime.fromisoformat("2026-11-15 12:30:00+00")
NOON = "before 2026-11-15 12:00:00.28+00"
TWO_O_CLOCK = "before 2026-11-15 14:00:00.1+00"
AT_END = "no recovery target specified"
FIRST = "000000010000000000000003"


def write_history(folder: Path, number: int, *lines: tuple[int, str, str]) -> None:
    """Writes a history as PostgreSQL does."""
    text = "\n".join(f"{parent}\t{position}\t{reason}\n" for parent, position, reason in lines)
    (folder / f"{number:08X}.history.gz").write_bytes(gzip.compress(text.encode()))


def refusal(folder: Path, until: datetime | None, requested: int | None = None) -> str:
    with pytest.raises(BackupError) as caught:
        choose_timelines(folder, FIRST, until, requested)
    return str(caught.value)


def test_archive_without_histories_has_the_timeline_of_the_base_backup(tmp_path: Path) -> None:
    assert choose_timelines(tmp_path, FIRST, None, None) == [1]
    assert choose_timelines(tmp_path, FIRST, LATE, 1) == [1]
    assert "--timeline: expected one" in refusal(tmp_path, None, 2)


def test_newest_timeline_is_followed_if_it_leaves_nothing_out(tmp_path: Path) -> None:
    """Recoveries to the end of the archive, which lose nothing, and one after the moment."""
    write_history(tmp_path, 2, (1, "0/4000000", AT_END))
    assert choose_timelines(tmp_path, FIRST, None, None) == [1, 2]
    write_history(tmp_path, 3, (1, "0/4000000", AT_END), (2, "0/6000158", TWO_O_CLOCK))
    assert choose_timelines(tmp_path, FIRST, LATE, None) == [1, 2, 3]


def test_timeline_must_be_requested_if_the_newest_one_leaves_changes_out(tmp_path: Path) -> None:
    write_history(tmp_path, 2, (1, "0/4000158", NOON))
    assert choose_timelines(tmp_path, FIRST, EARLY, None) == [1, 2]
    for moment in (LATE, None):
        assert f"--timeline: 1 (of the base backup), 2 (left 1 {NOON})" in refusal(tmp_path, moment)
        assert choose_timelines(tmp_path, FIRST, moment, 1) == [1]
        assert choose_timelines(tmp_path, FIRST, moment, 2) == [1, 2]
    write_history(tmp_path, 3, (1, "0/4000158", NOON), (2, "0/8000000", AT_END))
    assert "3 (left 2 at its end)" in refusal(tmp_path, LATE)


def test_timeline_must_be_requested_if_two_continue_the_same_one(tmp_path: Path) -> None:
    write_history(tmp_path, 2, (1, "0/4000000", AT_END))
    write_history(tmp_path, 3, (1, "0/5000000", AT_END))
    assert "2 (left 1 at its end), 3 (left 1 at its end)" in refusal(tmp_path, None)


def test_timelines_that_left_before_the_base_backup_do_not_count(tmp_path: Path) -> None:
    write_history(tmp_path, 2, (1, "0/2000158", NOON))
    assert choose_timelines(tmp_path, FIRST, None, None) == [1]
    later = "000000020000000000000003"
    write_history(tmp_path, 3, (1, "0/2000158", NOON), (2, "1/0", AT_END))
    assert choose_timelines(tmp_path, later, None, None) == [2, 3]


def write_segments(folder: Path, timeline: int, *numbers: int) -> None:
    for number in numbers:
        (folder / f"{timeline:08X}{number:016X}.gz").touch()


def new_archive(folder: Path) -> tuple[Path, Path]:
    """Returns the folders of an archive and of the segments in the base backup, which has the first one."""
    archive, carried = folder / "archive", folder / "pg_wal"
    for path in (archive, carried):
        path.mkdir()
    (carried / FIRST).touch()
    return archive, carried


def test_archive_must_have_all_segments_of_the_timelines_that_are_followed(tmp_path: Path) -> None:
    """A later timeline begins with a copy of the segment in which it left its parent."""
    archive, carried = new_archive(tmp_path)
    write_history(archive, 2, (1, "0/5000158", NOON))
    write_segments(archive, 1, 4, 5, 6, 9)
    (archive / "000000010000000000000003.00000028.backup.gz").touch()
    check_complete(archive, carried, FIRST, [1, 2])  # nothing of the second one is archived yet
    with pytest.raises(BackupError, match=r"000000010000000000000007\.gz is missing"):
        check_complete(archive, carried, FIRST, [1])
    write_segments(archive, 2, 6, 7)
    with pytest.raises(BackupError, match=r"000000020000000000000005\.gz is missing"):
        check_complete(archive, carried, FIRST, [1, 2])
    write_segments(archive, 2, 5)
    check_complete(archive, carried, FIRST, [1, 2])
    write_history(archive, 3, (1, "0/5000158", NOON), (2, "0/8000000", AT_END))
    write_segments(archive, 3, 9)
    with pytest.raises(BackupError, match=r"000000030000000000000008\.gz is missing"):
        check_complete(archive, carried, FIRST, [1, 2, 3])


def test_archive_or_base_backup_must_have_the_segments_up_to_a_branch(tmp_path: Path) -> None:
    archive, carried = new_archive(tmp_path)
    write_history(archive, 2, (1, "0/6000158", AT_END))
    write_segments(archive, 1, 4)
    write_segments(archive, 2, 6, 7)
    with pytest.raises(BackupError, match=r"000000010000000000000005\.gz is missing"):
        check_complete(archive, carried, FIRST, [1, 2])
    (carried / "000000010000000000000005").touch()  # of a backup that took long
    check_complete(archive, carried, FIRST, [1, 2])


def test_history_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "00000002.history.gz").write_bytes(b"\x1f\x8b")
    assert f"cannot read {tmp_path}/00000002.history.gz" in refusal(tmp_path, None)
