"""Events of the change stream are found wherever the network divides them."""

import pytest

from sso.client import event_stream
from sso.client.errors import UnexpectedResponse
from sso.client.event_stream import EventParser

STREAM = b'id: 1\nevent: made\ndata: {"a": 1}\n\n: beat\n\nid: 2\nevent: gone\ndata: {"b": "x"}\n\nid: 3\ndata: {}\n'
EVENTS = [{"type": "made", "a": 1, "id": "1"}, {"type": "gone", "b": "x", "id": "2"}]


@pytest.mark.parametrize(
    "stream",
    [
        STREAM,
        STREAM.replace(b"\n", b"\r\n"),
        STREAM.replace(b"}\n\n", b"}\n\r\n"),
        STREAM.replace(b"}\n\n", b"}\r\n\n"),
    ],
    ids=["lf", "crlf", "lf crlf", "crlf lf"],
)
def test_events_do_not_depend_on_the_pieces(stream: bytes) -> None:
    for size in range(1, len(stream) + 1):
        parser = EventParser()
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS, size


def test_event_that_is_too_large_is_refused_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 20)
    parser = EventParser()
    assert list(parser.feed(b"data: {}\n\n" + 20 * b"x")) == []
    with pytest.raises(UnexpectedResponse, match="too large"):
        list(parser.feed(b"x"))
