"""What the history of the actors must satisfy, and what it proves something about."""

from typing import Any

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
from tests.histories.history import Outcome
from tests.histories.world import ROOTS, USER_LIMIT, World

ONCE = ("redeem", "refresh", "deliver", "recover")


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
