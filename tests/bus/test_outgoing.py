"""Topics that wait to be sent: merged, in few messages of limited length, and limited in number."""

import pytest

from sso.bus import outgoing
from sso.bus.outgoing import Outgoing
from sso.bus.transport import MAX_PAYLOAD, Message


def test_topics_for_one_worker_share_a_message_and_repeated_ones_are_merged() -> None:
    waiting = Outgoing()
    for worker, label in (("w1", "a"), ("w2", "b"), ("w1", "c"), ("w1", "a")):
        assert waiting.add(worker, label)
    assert len(waiting) == 3
    assert waiting.take() == [Message("w1", "a\nc"), Message("w2", "b")]
    assert len(waiting) == 0
    assert waiting.take() == []


def test_messages_are_shorter_than_a_notification_of_postgresql_may_be() -> None:
    waiting = Outgoing()
    labels = [f"poll:{number:036}" for number in range(1000)]
    for label in labels:
        waiting.add("w", label)
    payloads = [payload for _, payload in waiting.take()]
    assert [label for payload in payloads for label in payload.split("\n")] == labels
    assert max(map(len, payloads)) <= MAX_PAYLOAD < 8000
    assert len(payloads) == 6


def test_message_of_the_greatest_length_is_not_split() -> None:
    waiting = Outgoing()
    waiting.add("w", "a" * (MAX_PAYLOAD - 2))
    waiting.add("w", "b")
    assert [len(payload) for _, payload in waiting.take()] == [MAX_PAYLOAD]
    assert not waiting.add("w", "a" * (MAX_PAYLOAD + 1))


def test_number_of_waiting_topics_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "MAX_WAITING", 3)
    waiting = Outgoing()
    assert [waiting.add("w", label) for label in "abcda"] == [True, True, True, False, True]
    assert waiting.take() == [Message("w", "a\nb\nc")]


def test_few_messages_are_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "MAX_MESSAGES", 2)
    waiting = Outgoing()
    for worker in ("w1", "w2", "w3"):
        waiting.add(worker, "a")
    assert [message.worker for message in waiting.take()] == ["w1", "w2"]
    assert [message.worker for message in waiting.take()] == ["w3"]


def test_messages_that_were_not_sent_wait_again() -> None:
    waiting = Outgoing()
    waiting.add("w1", "a")
    waiting.add("w1", "b")
    waiting.put_back(waiting.take())
    assert len(waiting) == 2
    assert waiting.take() == [Message("w1", "a\nb")]
