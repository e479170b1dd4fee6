"""Keeps the copy of a replica current, in memory and on disk."""

import threading
from collections.abc import Sequence
from typing import Any

import structlog

from sso.client.errors import RequestRefused
from sso.perm.replica.copy import ReplicaCopy
from sso.perm.replica.definition import Definition
from sso.replica.clock import ReplicaClock
from sso.replica.feed import ChangesPage, Feed
from sso.replica.snapshot_file import SnapshotFile, SnapshotUnreadable

MAX_FETCHES = 5  # of users who are asked for while changes come in
CURSOR_KEPT_S = 600.0  # how often the cursor is written although nothing has changed

log = structlog.get_logger()


class CopyKeeper:
    """``cursor`` is set after the changes up to it are in the copy, so an answer is never older than it says."""

    def __init__(self, clock: ReplicaClock, file: SnapshotFile | None) -> None:
        self._clock = clock
        self._file = file
        self._file_is_complete = False
        self._changing = threading.RLock()
        self._cursor_written_at = 0.0
        self.copy: ReplicaCopy | None = None
        self.cursor = ""
        self.needs_snapshot = True

    def restore(self) -> None:
        """Reads the copy on disk, if there is one that this replica has written."""
        if self._file is None:
            return
        try:
            restored = self._file.read()
        except (SnapshotUnreadable, OSError) as error:
            log.warning("replica.snapshot_rejected", reason=str(error) or "it belongs to other credentials")
            return
        if restored is not None:
            self.copy, self.cursor, saved_at = restored
            self._clock.restored(saved_at)
            self._file_is_complete, self.needs_snapshot = True, False
            log.info("replica.restored", users=len(self.copy), revision=self.cursor)

    def close(self) -> None:
        """Releases the lock of the folder. Can be called again."""
        with self._changing:
            if self._file is not None:
                self._file.close()
            self._file = None

    def load(self, feed: Feed) -> None:
        """Reads everything. The copy before it stays in use meanwhile."""
        definition, cursor, _ = feed.definition()
        copy = ReplicaCopy(definition)
        for version, rows in feed.all_users():
            if version != copy.definition.version and not _use_newer(copy, feed):
                return  # other attributes of users matter now: begin again
            copy.add(rows)
        _, end, _ = feed.definition()
        while True:  # pages may be newer than the cursor, so the copy is complete after these changes
            started = self._clock.start_request()
            page = feed.changes(cursor, 0)
            if page.is_snapshot_needed or (page.version != copy.definition.version and not _use_newer(copy, feed)):
                return
            copy.add(page.rows)
            copy.remove(page.missing)
            cursor = page.cursor
            if int(cursor) >= int(end):
                break
        with self._changing:
            self.copy, self.cursor, self.needs_snapshot = copy, cursor, False
            self._clock.answered(started, page.now)
            self._write()

    def follow(self, feed: Feed, wait_s: int) -> None:
        """Applies the next changes, or waits for some up to ``wait_s``. Raises ClientError."""
        after, started = self.cursor, self._clock.start_request()
        if self.copy is None or self.needs_snapshot:
            return
        try:
            page = feed.changes(after, wait_s)
        except RequestRefused as error:
            self.needs_snapshot |= error.status == 400  # the cursor is too old, or the service has another database
            raise
        with self._changing:
            if self.cursor == after:  # otherwise another thread has applied these changes
                self._apply(self.copy, page, feed)
                if not self.needs_snapshot:
                    self._clock.answered(started, page.now)

    def fetch(self, feed: Feed, user_ids: Sequence[str]) -> set[str]:
        """Adds users who are not in the copy. Returns those who do not exist. Raises ClientError."""
        for _ in range(MAX_FETCHES - 1):
            cursor, copy = self.cursor, self.copy
            rows = feed.users(user_ids)
            with self._changing:
                if cursor == self.cursor and copy is self.copy:  # otherwise a change may be newer than these rows
                    return self._add_users(user_ids, rows)
        with self._changing:  # changes wait for the last attempt, so that it succeeds
            return self._add_users(user_ids, feed.users(user_ids))

    def _add_users(self, user_ids: Sequence[str], rows: list[list[Any]]) -> set[str]:
        copy = self.copy
        if copy is not None:
            copy.add(row for row in rows if row[0] not in copy)
        return set(user_ids) - {row[0] for row in rows}

    def _apply(self, copy: ReplicaCopy, page: ChangesPage, feed: Feed) -> None:
        before = copy.definition
        if page.is_snapshot_needed:
            self.needs_snapshot = True
            return
        copy.add(page.rows)
        copy.remove(page.missing)
        if page.version != before.version and not _use_newer(copy, feed):
            self.needs_snapshot = True
            return
        self.cursor = page.cursor
        self._save(page, copy.definition if copy.definition is not before else None)

    def _save(self, page: ChangesPage, definition: Definition | None) -> None:
        if self._file is None:
            return
        if not self._file_is_complete:
            self._write()
            return
        try:
            if definition is not None:
                self._file.add_definition(definition)
            moment = self._clock.start_request()
            if page.rows or page.missing or definition is not None or moment > self._cursor_written_at + CURSOR_KEPT_S:
                self._file.add_changes(page.cursor, page.rows, page.missing)
                self._cursor_written_at = moment
            self._file.touch()
            if self._file.has_many_changes:
                self._write()
        except OSError as error:
            self._file_is_complete = False
            log.warning("replica.save_failed", reason=str(error))

    def _write(self) -> None:
        if self._file is None or self.copy is None:
            return
        try:
            self._file.write(self.copy, self.cursor)
            self._file_is_complete = True
        except OSError as error:
            self._file_is_complete = False
            log.warning("replica.save_failed", reason=str(error))


def _use_newer(copy: ReplicaCopy, feed: Feed) -> bool:
    """Reads the definition again. Returns False if the users in the copy lack what it needs."""
    definition, _, _ = feed.definition()
    if not copy.definition.covers(definition):
        return False
    copy.use(definition)
    return True
