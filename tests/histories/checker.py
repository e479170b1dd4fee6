"""What a history must satisfy, whatever faults happened meanwhile. Each check returns its violations as sentences."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.histories.history import Call, History, Outcome


def used_too_often(history: History, operation: str, limit: int = 1) -> list[str]:
    """Finds subjects that were used successfully more often than they may."""
    return [
        f"{operation}: {subject} succeeded {count} times"
        for subject, calls in history.by_subject(operation).items()
        if (count := sum(call.outcome is Outcome.DONE for call in calls)) > limit
    ]


def lost(history: History, operation: str, issued: str, ended: str = "") -> list[str]:
    """Finds subjects that were acknowledged as ``issued`` and whose every use was refused.

    A use without an answer may have been the one that counts. What was ``ended`` may be refused.
    """
    acknowledged = {call.subject for call in history.calls(issued) if call.outcome is Outcome.DONE}
    acknowledged -= {call.subject for call in history.calls(ended)} if ended else set()
    return [
        f"{operation}: {subject} was refused, although it was acknowledged and not used"
        for subject, calls in history.by_subject(operation).items()
        if subject in acknowledged and {call.outcome for call in calls} == {Outcome.REFUSED}
    ]


def accepted_after_end(history: History, operation: str, ended: str) -> list[str]:
    """Finds subjects that were accepted by a call that began after their end was acknowledged."""
    ends = {
        subject: min(call.end for call in calls if call.outcome is Outcome.DONE)
        for subject, calls in history.by_subject(ended).items()
        if any(call.outcome is Outcome.DONE for call in calls)
    }
    return [
        f"{operation}: {call.subject} was accepted {call.begin - ends[call.subject]:.3f} s after its end"
        for call in history.calls(operation)
        if call.outcome is Outcome.DONE and call.begin > ends.get(call.subject, float("inf"))
    ]


def too_many_attempts(history: History, operation: str, free: int) -> list[str]:
    """Finds subjects with more attempts than a block allows that doubles with each attempt, from one second on."""
    found = []
    for subject, calls in history.by_subject(operation).items():
        ends = sorted(call.end for call in calls if call.outcome is Outcome.DONE)
        for count, end in enumerate(ends, 1):
            seconds = end - calls[0].begin
            if count > free + int(math.log2(1 + seconds)):
                found.append(f"{operation}: {subject} had {count} attempts in {seconds:.1f} s")
                break
    return found


@dataclass(frozen=True)
class Membership:
    """A time in which a subject certainly was a member: from the end of its join to the begin of its leave."""

    subject: str
    begin: float
    end: float


def certain_memberships(history: History, join: str, leave: str) -> list[Membership]:
    """Each subject must be joined and left by one client at a time."""
    found: list[Membership] = []
    leaves = history.by_subject(leave)
    for subject, joins in history.by_subject(join).items():
        for call in joins:
            if call.outcome is Outcome.DONE:
                later = [left.begin for left in leaves.get(subject, []) if left.begin > call.end]
                found.append(Membership(subject, call.end, min(later, default=float("inf"))))
    return found


def above_limit(memberships: Sequence[Membership], limit: int, operation: str) -> list[str]:
    """Finds moments at which there were more members than the limit allows."""
    found = []
    for moment in sorted({membership.begin for membership in memberships}):
        present = {item.subject for item in memberships if item.begin <= moment < item.end}
        if len(present) > limit:
            found.append(f"{operation}: {len(present)} at once, with a limit of {limit}: {', '.join(sorted(present))}")
    return found


def nobody_left(history: History, removal: str, members: Iterable[str]) -> list[str]:
    """Finds out whether all members were removed, each with an acknowledgement."""
    removed = {call.subject for call in history.calls(removal) if call.outcome is Outcome.DONE}
    return [] if set(members) - removed else [f"{removal}: all of {', '.join(sorted(removed))} were removed"]


@dataclass(frozen=True)
class StreamEvent:
    id: str
    operation: str
    subject: str


def stream_violations(
    history: History, streams: Sequence[Sequence[StreamEvent]], operations: Sequence[str]
) -> list[str]:
    """Compares what each reader of the change stream got with the acknowledged changes.

    Readers get the same events in the same order. Each acknowledged change has one event, and changes of which one had
    ended when the other began have their events in this order. Each pair of operation and subject happens once.
    """
    first = list(streams[0])
    found = [f"reader {number} got another stream" for number, stream in enumerate(streams[1:], 2) if stream != first]
    positions: dict[tuple[str, str], list[int]] = {}
    for position, event in enumerate(first):
        positions.setdefault((event.operation, event.subject), []).append(position)
    calls = sorted((call for name in operations for call in history.calls(name)), key=lambda call: call.begin)
    done = [call for call in calls if call.outcome is Outcome.DONE]
    found += [
        f"stream: {call.operation} of {call.subject} has {count} events"
        for call in done
        if (count := len(positions.get((call.operation, call.subject), ()))) != 1
    ]
    return found + list(_wrong_order(done, positions))


def _wrong_order(done: Sequence[Call], positions: dict[tuple[str, str], list[int]]) -> Iterator[str]:
    placed = [(call, positions[key][0]) for call in done if (key := (call.operation, call.subject)) in positions]
    for index, (call, position) in enumerate(placed):
        for later, later_position in placed[index + 1 :]:
            if call.precedes(later) and later_position < position:
                yield f"stream: {later.operation} of {later.subject} comes before {call.operation} of {call.subject}"
