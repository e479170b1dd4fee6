"""The timelines of a WAL archive.

A restored database begins a new timeline, which leaves its parent where the recovery ended. Later changes of the parent
are not on it. PostgreSQL follows one timeline, and does not say that another one has changes that are left out.
"""

import datetime
import gzip
import re
import zlib
from itertools import zip_longest
from pathlib import Path

from msgspec import Struct

from sso.backup import BackupError
from sso.db.embedded.wal_archive import SUFFIX

SEGMENT_BITS = 24  # a segment has 16 MB
NO_TARGET = "no recovery target specified"
_SEGMENT_NAME = re.compile(r"[0-9A-F]{24}")
_HISTORY_NAME = re.compile(r"([0-9A-F]{8})\.history" + re.escape(SUFFIX))
# The parent, the position in the WAL, and the reason, such as "before 2026-11-15 12:00:03.281+00" or NO_TARGET.
_HISTORY_LINE = re.compile(r"(\d+)\t([0-9A-F]+)/([0-9A-F]+)\t(.+)")


class Branch(Struct, frozen=True):
    """The end of one timeline in the history of another one."""

    parent: int
    segment: int
    reason: str

    @property
    def moment(self) -> datetime.datetime | None:
        """The time of the first change that is left out, None if the history does not have it."""
        try:
            return datetime.datetime.fromisoformat(self.reason.removeprefix("before "))
        except ValueError:
            return None

    def may_be_before(self, until: datetime.datetime | None) -> bool:
        return until is None or self.moment is None or self.moment <= until

    def __str__(self) -> str:
        return f"left {self.parent} {'at its end' if self.reason == NO_TARGET else self.reason}"


def choose_timelines(folder: Path, first: str, until: datetime.datetime | None, requested: int | None) -> list[int]:
    """Returns the timelines to follow, from that of the first segment to the requested one, or else to the newest one.

    Raises BackupError if the newest one leaves out changes up to ``until``: then one must be requested.
    """
    own = int(first[:8], 16)
    histories: dict[int, list[Branch]] = {own: [], **_histories_after(folder, own, segment_number(first))}
    target = requested or max(histories)
    if target not in histories:
        raise BackupError(f"--timeline: expected one that the archive has after the base backup: {_names(histories)}")
    followed = [*(branch.parent for branch in histories[target]), target]
    if requested is None and any(branch.may_be_before(until) for branch in _incomplete(histories, followed)):
        raise BackupError(
            "several timelines of the archive have changes up to the requested moment: "
            f"choose one with --timeline: {_names(histories)}"
        )
    return followed


def check_complete(folder: Path, carried: Path, first: str, timelines: list[int]) -> None:
    """Raises BackupError if the archive lacks a segment of the timelines that are followed, as far as it has them.

    PostgreSQL takes a missing segment for the end of the archive, and would leave out everything after it. The base
    backup has those in ``carried``, the first one and what was written while it was made. A later timeline begins with
    a copy of the segment in which it left its parent; later segments of the parent are not needed.
    """
    histories = _histories_after(folder, timelines[0], segment_number(first))
    branches = histories[timelines[-1]] if len(timelines) > 1 else []
    begins = [segment_number(first), *(branch.segment for branch in branches)]
    names = [path.name.removesuffix(SUFFIX) for path in (*folder.glob(f"*{SUFFIX}"), *carried.iterdir())]
    for timeline, begin, left_at in zip_longest(timelines, begins, begins[1:]):
        prefix = f"{timeline:08X}"
        known = {segment_number(name) for name in names if _SEGMENT_NAME.fullmatch(name) and name.startswith(prefix)}
        end = max(known, default=begin) if left_at is None else left_at
        for missing in sorted(set(range(begin, end)) - known):
            name = f"{prefix}{missing >> 8:08X}{missing & 0xFF:08X}{SUFFIX}"
            raise BackupError(f"the archive {folder} is incomplete: {name} is missing; restore with --until before it")


def _incomplete(histories: dict[int, list[Branch]], followed: list[int]) -> list[Branch]:
    """Returns the branches with changes on both sides, of which only one can be followed."""
    return [
        history[-1]
        for number, history in histories.items()
        if history and not (number in followed and history[-1].reason == NO_TARGET)
    ]


def segment_number(segment: str) -> int:
    """The number of a segment of 16 MB. The first 8 digits are the timeline."""
    return int(segment[8:16], 16) << 8 | int(segment[16:], 16)


def _names(histories: dict[int, list[Branch]]) -> str:
    return ", ".join(
        f"{number} ({history[-1]})" if history else f"{number} (of the base backup)"
        for number, history in sorted(histories.items())
    )


def _histories_after(folder: Path, own: int, start: int) -> dict[int, list[Branch]]:
    """Returns the timelines that come from a position of a timeline, each with its branches from there on."""
    histories = {}
    for path in folder.iterdir():
        if name := _HISTORY_NAME.fullmatch(path.name):
            history = _read(path)
            parents = [branch.parent for branch in history]
            if own in parents and history[parents.index(own)].segment >= start:
                histories[int(name[1], 16)] = history[parents.index(own) :]
    return histories


def _read(path: Path) -> list[Branch]:
    try:
        text = gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BackupError(f"cannot read {path}: {error}") from None
    return [
        Branch(int(parent), (int(high, 16) << 32 | int(low, 16)) >> SEGMENT_BITS, reason.strip())
        for parent, high, low, reason in _HISTORY_LINE.findall(text)
    ]
