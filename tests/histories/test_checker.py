"""Each check finds the violation that it is for, and accepts the histories that faults may lead to."""

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
from tests.histories.history import Call, History, Outcome

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN


def history(*calls: tuple[str, str, float, float, Outcome]) -> History:
    return History(Call("client", *call) for call in calls)


def test_second_success_is_found_and_a_refused_or_lost_answer_is_not() -> None:
    once = history(("redeem", "c1", 1, 2, DONE), ("redeem", "c1", 1, 3, REFUSED), ("redeem", "c1", 4, 5, UNKNOWN))
    assert used_too_often(once, "redeem") == []
    twice = history(("redeem", "c1", 1, 2, DONE), ("redeem", "c1", 1, 3, DONE))
    assert used_too_often(twice, "redeem") == ["redeem: c1 succeeded 2 times"]


def test_acknowledged_value_that_nobody_can_use_is_found() -> None:
    issued = ("issue", "c1", 0, 1, DONE)
    refused = ("redeem", "c1", 2, 3, REFUSED)
    assert len(lost(history(issued, refused), "redeem", "issue")) == 1
    assert lost(history(issued, refused, ("redeem", "c1", 2, 4, UNKNOWN)), "redeem", "issue") == []
    assert lost(history(issued, refused, ("redeem", "c1", 2, 4, DONE)), "redeem", "issue") == []
    assert lost(history(issued, refused, ("end", "c1", 1, 2, UNKNOWN)), "redeem", "issue", "end") == []
    assert lost(history(("issue", "c1", 0, 1, UNKNOWN), refused), "redeem", "issue") == []


def test_use_after_the_acknowledged_end_is_found() -> None:
    ended = ("revoke", "g1", 2, 3, DONE)
    assert accepted_after_end(history(ended, ("use", "g1", 2.5, 4, DONE)), "use", "revoke") == []
    assert accepted_after_end(history(ended, ("use", "g1", 3.5, 4, REFUSED)), "use", "revoke") == []
    assert accepted_after_end(history(ended, ("use", "g2", 3.5, 4, DONE)), "use", "revoke") == []
    assert len(accepted_after_end(history(ended, ("use", "g1", 3.5, 4, DONE)), "use", "revoke")) == 1


def test_attempts_beyond_the_growing_block_are_found() -> None:
    early = [("guess", "u1", 0, 0.5, DONE)] * 5 + [("guess", "u1", 0, 0.6, UNKNOWN)]
    assert too_many_attempts(history(*early, ("guess", "u1", 1, 1.1, DONE)), "guess", 5) == []
    assert len(too_many_attempts(history(*early, ("guess", "u1", 0, 0.6, DONE)), "guess", 5)) == 1


def test_moment_above_the_limit_is_found() -> None:
    joined = [("join", "a", 0, 1, DONE), ("join", "b", 0, 2, DONE), ("join", "c", 5, 6, DONE)]
    calls = history(*joined, ("leave", "a", 3, 4, UNKNOWN))
    assert above_limit(certain_memberships(calls, "join", "leave"), 2, "join") == []
    calls = history(*joined, ("leave", "a", 7, 8, DONE))
    assert above_limit(certain_memberships(calls, "join", "leave"), 2, "join") == [
        "join: 3 at once, with a limit of 2: a, b, c"
    ]


def test_removal_of_everybody_is_found() -> None:
    removals = [("remove", "a", 0, 1, DONE), ("remove", "b", 0, 1, UNKNOWN)]
    assert nobody_left(history(*removals), "remove", ["a", "b"]) == []
    assert nobody_left(history(*removals, ("remove", "b", 2, 3, DONE)), "remove", ["a", "b"])


def test_missing_doubled_and_swapped_events_are_found() -> None:
    calls = history(("disable", "1", 0, 1, DONE), ("disable", "2", 2, 3, DONE), ("disable", "3", 2, 3, UNKNOWN))
    first, second = StreamEvent("10", "disable", "1"), StreamEvent("11", "disable", "2")
    third = StreamEvent("12", "disable", "3")
    for right in ([first, second], [first, second, third], [first, third, second]):
        assert stream_violations(calls, [right, right], ["disable"]) == []
    for wrong in ([first], [first, second, second], [second, first]):
        assert stream_violations(calls, [wrong, wrong], ["disable"]), wrong
    assert stream_violations(calls, [[first, second], [first]], ["disable"]) == ["reader 2 got another stream"]
