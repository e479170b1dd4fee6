"""Sends the users of a file in batches, and counts what becomes of them."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import IO, Any

import orjson
from msgspec import Struct, field

from sso.accounts.model import login_key
from sso.cli.context import CommandFailure
from sso.cli.records.types import Fields
from sso.cli.user_files.mapping import NameMapping
from sso.cli.user_files.model import Entries, SourceUser
from sso.client import RequestRefused
from sso.web.body import InvalidBody, parse_body

BATCH = 250
MAX_BATCH_BYTES = 1 << 20
MAX_USER_BYTES = 1 << 16
BYTES_PER_VALUE = 11  # a batch may have 100,000 values
SKIPPED = "skipped"

SendBatch = Callable[[Sequence[Fields]], Awaitable[Fields]]


class Reason(Struct):
    count: int
    first_line: int


class ImportReport(Struct):
    """Counts by outcome, and the reasons by text. None of them has a secret."""

    counts: dict[str, int] = field(default_factory=lambda: {"created": 0, "updated": 0, "unchanged": 0, SKIPPED: 0})
    reasons: dict[tuple[str, str], Reason] = field(default_factory=dict)  # by outcome and text

    def add(self, line: int, outcome: str, notes: Sequence[str]) -> None:
        self.counts[outcome] += 1
        for note in notes:
            self.reasons.setdefault((outcome, note), Reason(0, line)).count += 1

    def lines(self) -> list[str]:
        most_first = sorted(self.reasons.items(), key=lambda item: (item[0][0] != SKIPPED, -item[1].count))
        words = {SKIPPED: "skipped"}
        return [
            f"{words.get(outcome, 'note for')} {reason.count:,}: {text} (first: line {reason.first_line})"
            for (outcome, text), reason in most_first
        ]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class _Waiting(Struct, frozen=True):
    line: int
    source: SourceUser
    record: Fields


class ImportRun:
    """``log`` gets a line of JSON for each user: its line, outcome, old and new id."""

    def __init__(self, source: str, names: NameMapping, send: SendBatch, log: IO[bytes] | None = None) -> None:
        self._source = source
        self._names = names
        self._send = send
        self._log = log
        self._lines: dict[bytes, int] = {}  # of the logins so far, by digest
        self._batch: list[_Waiting] = []
        self._batch_bytes = 0
        self.report = ImportReport()

    async def run(self, entries: Entries, progress: Callable[[int], None]) -> ImportReport:
        """Raises CommandFailure if a batch is refused. What was imported before stays, and can be imported again."""
        for entry in entries:
            if entry.user is None:
                self._record(entry.line, None, {"outcome": SKIPPED, "notes": [entry.problem]})
            else:
                await self._add(entry.line, entry.user)
            progress(self.report.total)
        await self._flush()
        return self.report

    async def _add(self, line: int, user: SourceUser) -> None:
        record = self._names.record(user, self._source)
        problem, size = self._check(line, record)
        if problem:
            self._record(line, user, {"outcome": SKIPPED, "notes": [problem]})
            return
        if self._batch_bytes + size > MAX_BATCH_BYTES or len(self._batch) >= BATCH:
            await self._flush()
        self._batch.append(_Waiting(line, user, record))
        self._batch_bytes += size

    def _check(self, line: int, record: Fields) -> tuple[str, int]:
        size, problem = _measure(record)
        if problem:
            return problem, size
        digest = hashlib.blake2b(login_key(str(record["login"])).encode(), digest_size=12).digest()
        first = self._lines.setdefault(digest, line)
        return (f"the same login is on line {first}" if first != line else ""), size

    async def _flush(self) -> None:
        if not self._batch:
            return
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        try:
            answer = await self._send([item.record for item in batch])
        except RequestRefused as error:
            lines = f"lines {batch[0].line} to {batch[-1].line}"
            done = f"{self.report.total:,} users before them were done; run the command again to continue"
            raise CommandFailure(f"{lines} were refused: {error.text} ({done})") from None
        for item, result in zip(batch, answer["results"], strict=True):
            self._record(item.line, item.source, result)

    def _record(self, line: int, user: SourceUser | None, result: Fields) -> None:
        notes = [*(user.notes if user else ()), *result["notes"]]
        outcome = result["outcome"]
        self.report.add(line, outcome, result["notes"] if outcome == SKIPPED else notes)
        if self._log is not None:
            entry = {
                "line": line,
                "outcome": outcome,
                "login": _as_text(user.fields.get("login")) if user else None,
                "source_id": _as_text(user.source_id) if user else None,
                "user_id": result.get("user_id"),
                "notes": [_as_text(note) for note in notes],
            }
            self._log.write(orjson.dumps(entry) + b"\n")


def _as_text(value: Any) -> str | None:
    """Returns what a file has, which may be no valid text, as one that can be written."""
    return None if value is None else str(value).encode(errors="replace").decode()


def _measure(record: Fields) -> tuple[int, str]:
    """Returns the bytes of a user, more if it has many small values, and what a whole batch would be refused for."""
    try:
        raw = orjson.dumps({"users": [record]})
    except TypeError:
        return 0, "expected Unicode text, and numbers of 64 bits"
    if len(raw) > MAX_USER_BYTES:
        return len(raw), f"the user has more than {MAX_USER_BYTES // 1024} KiB"
    try:
        parse_body(raw, "application/json")
    except InvalidBody as error:
        return len(raw), f"the user {error.problem}"
    return max(len(raw), BYTES_PER_VALUE * sum(map(raw.count, (b",", b"[", b"{")))), ""
