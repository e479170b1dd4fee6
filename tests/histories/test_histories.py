"""Concurrent clients at two nodes while faults happen: the history of their calls proves what must never happen."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.histories.actors import acting
from tests.histories.checker import (
    StreamEvent,
    above_limit,
    accepted_after_end,
    certain_memberships,
    lost,
    nobody_left,
    stream_violations,
    used_twice,
)
from tests.histories.faults import Faults
from tests.histories.history import Outcome
from tests.histories.world import ROOTS, USER_LIMIT, World, world

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "0"))
SECONDS = 30.0 * ROUNDS or 8.0
ONCE = ("redeem", "refresh", "deliver", "recover")
pytestmark = pytest.mark.timeout(600 + 2 * int(SECONDS))


def test_history_with_faults(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    with world(tmp_path) as running:
        faults = Faults(running, random.Random(seed))
        with acting(running) as actors:
            faults.inject(SECONDS, until=lambda: not unproven(running))
        found = violations(running)
    rounds = {actor.name: (actor.rounds, dict(actor.interruptions)) for actor in actors}
    unknown = sum(call.outcome is Outcome.UNKNOWN for name in ONCE for call in running.history.calls(name))
    print(f"seed {seed}: {len(running.history)} calls, {unknown} without an answer, {dict(faults.injected)}, {rounds}")
    assert found == []
    assert unproven(running) == []


def unproven(running: World) -> list[str]:
    """Returns the operations that never succeeded, so that the history proves nothing about them."""
    operations = (*ONCE, "revoke", "join", "user_disabled", "remove_root")
    return [
        operation
        for operation in operations
        if not any(call.outcome is Outcome.DONE for call in running.history.calls(operation))
    ]


def violations(running: World) -> list[str]:
    history = running.history
    rounds = {call.subject.partition(":")[0] for call in history.calls("remove_root")}
    return [
        *(text for operation in ONCE for text in used_twice(history, operation)),
        *lost(history, "redeem", "issue_code"),
        *lost(history, "refresh", "issue_refresh_token"),
        *lost(history, "deliver", "confirm"),
        *lost(history, "recover", "issue_recovery_code"),
        *accepted_after_end(history, "use_access_token", "revoke"),
        *above_limit(certain_memberships(history, "join", "leave"), USER_LIMIT),
        *(
            text
            for number in rounds
            for text in nobody_left(history, "remove_root", [f"{number}:{user_id}" for user_id in ROOTS])
        ),
        *stream_violations(history, [read_stream(running, number) for number in (0, 1)], ["user_disabled"]),
    ]


def read_stream(running: World, number: int) -> list[StreamEvent]:
    """Reads the change stream at a node from the beginning."""
    events: list[StreamEvent] = []
    with running.administrator(running.nodes[number]) as http:
        after: dict[str, Any] = {}
        while page := http.get("/changes", params={"limit": 1000, **after}).raise_for_status().json():
            if not page["data"]:
                return [event for event in events if event.operation == "user_disabled"]
            events += [StreamEvent(item["id"], item.get("type", ""), str(item.get("user_id"))) for item in page["data"]]
            after = {"after": page["next"]}
    raise AssertionError("the stream has no end")
