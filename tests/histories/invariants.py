"""What the history of the actors must satisfy, and what it proves something about."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sso.perm.stores.access_keys import MAX_ACCESS_KEYS
from tests.histories.checker import (
    StreamEvent,
    above_limit,
    accepted_after_end,
    certain_memberships,
    lost,
    nobody_left,
    stream_violations,
    too_many_attempts,
    used_too_often,
)
from tests.histories.history import History, Outcome
from tests.histories.world import PROJECT_LIMIT, ROOTS, USER_LIMIT, World

FREE_ATTEMPTS = 5  # wrong codes of an account before it is blocked for a while
STREAM_OPERATIONS = ("user_disabled", "permissions_changed")


@dataclass(frozen=True)
class Invariant:
    """What must hold. It proves nothing if one of the operations never succeeded."""

    text: str
    operations: tuple[str, ...]
    check: Callable[[World], list[str]]

    def unproven(self, history: History) -> list[str]:
        return [
            operation
            for operation in self.operations
            if not any(call.outcome is Outcome.DONE for call in history.calls(operation))
        ]


def violations(running: World) -> list[str]:
    return [text for invariant in INVARIANTS for text in invariant.check(running)]


def unproven(running: World) -> list[str]:
    return [name for invariant in INVARIANTS for name in invariant.unproven(running.history)]


def _once(what: str, operation: str) -> Invariant:
    return Invariant(
        f"{what} is used at most once.", (operation,), lambda running: used_too_often(running.history, operation)
    )


def _not_lost(what: str, operation: str, issued: str) -> Invariant:
    return Invariant(
        f"{what} that was acknowledged and not used works.",
        (operation,),
        lambda running: lost(running.history, operation, issued),
    )


def _ended(text: str, operation: str, ended: str) -> Invariant:
    return Invariant(text, (ended,), lambda running: accepted_after_end(running.history, operation, ended))


def _at_most(text: str, operation: str, limit: int) -> Invariant:
    return Invariant(text, (operation,), lambda running: used_too_often(running.history, operation, limit))


def _limit(text: str, join: str, leave: str) -> Invariant:
    return Invariant(
        text,
        (join, leave),
        lambda running: above_limit(certain_memberships(running.history, join, leave), USER_LIMIT, join),
    )


def _administrators_left(running: World) -> list[str]:
    rounds = {call.subject.partition(":")[0] for call in running.history.calls("remove_root")}
    left = partial(nobody_left, running.history, "remove_root")
    return [text for number in rounds for text in left([f"{number}:{user_id}" for user_id in ROOTS])]


def _stream(running: World) -> list[str]:
    return stream_violations(running.history, [read_stream(running, number) for number in (0, 1)], STREAM_OPERATIONS)


INVARIANTS = (
    _once("An authorization code", "redeem"),
    _not_lost("An authorization code", "redeem", "issue_code"),
    _once("A refresh token", "refresh"),
    _not_lost("A refresh token", "refresh", "issue_refresh_token"),
    _ended("A refresh token of a grant is refused after an earlier one was used again.", "use_family", "reuse"),
    _ended("An access token is refused after its grant was revoked.", "use_access_token", "revoke"),
    _once("The result of a game session", "deliver"),
    _not_lost("The result of a game session", "deliver", "confirm"),
    _once("A device code", "redeem_device"),
    _not_lost("A device code", "redeem_device", "confirm_device"),
    _once("A recovery code", "recover"),
    _not_lost("A recovery code", "recover", "issue_recovery_code"),
    _once("A link to reset a password", "reset"),
    _not_lost("A link to reset a password", "reset", "issue_reset_link"),
    _once("An invitation", "accept"),
    _not_lost("An invitation", "accept", "issue_accept_link"),
    _once("The ticket of a store", "use_ticket"),
    _ended("A token is refused after its user was disabled.", "use_login", "user_disabled"),
    Invariant(
        f"After {FREE_ATTEMPTS} wrong codes each further attempt waits twice as long.",
        ("guess",),
        lambda running: too_many_attempts(running.history, "guess", FREE_ATTEMPTS),
    ),
    _limit("A role never has more users than its limit.", "join", "leave"),
    _limit("A role in projects never has more members than its limit.", "join_project", "leave_project"),
    _at_most("An application never has more access keys than its limit.", "create_key", MAX_ACCESS_KEYS),
    _at_most("A user never has more projects than the limit.", "publish", PROJECT_LIMIT),
    Invariant("An administrator is left.", ("remove_root",), _administrators_left),
    Invariant("The change stream has every effective change once, in commit order.", STREAM_OPERATIONS, _stream),
)


def read_stream(running: World, number: int) -> list[StreamEvent]:
    """Reads the change stream at a node from the beginning, without the changes that happen many times to a user."""
    events: list[StreamEvent] = []
    with running.administrator(running.nodes[number]) as http:
        after: dict[str, Any] = {}
        while page := http.get("/changes", params={"limit": 1000, **after}).raise_for_status().json():
            if not page["data"]:
                recorded = {call.subject for name in STREAM_OPERATIONS for call in running.history.calls(name)}
                return [event for event in events if event.subject in recorded]
            events += [
                StreamEvent(item["id"], item.get("type", "permissions_changed"), str(item.get("user_id")))
                for item in page["data"]
            ]
            after = {"after": page["next"]}
    raise AssertionError("the stream has no end")
