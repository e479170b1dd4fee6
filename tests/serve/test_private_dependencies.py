"""The private parts of hypercorn, wsproto and httptools that sso.serve depends on still exist and work as expected.

A failure after an upgrade names the file that has to be adapted.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import httptools
import pytest
import trio
import wsproto.connection
from hypercorn.protocol import ProtocolWrapper, h11, ws_stream
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from wsproto.connection import ConnectionType
from wsproto.events import Message

from sso.serve import hypercorn_patches
from sso.serve.hypercorn_websocket import HypercornWebSocket
from tests.test_private_dependencies import changed, code_digest

PATCHES, CONNECTION, WEBSOCKET = (
    f"sso/serve/{name}.py" for name in ("hypercorn_patches", "hypercorn_connection", "hypercorn_websocket")
)
# Methods or attributes that we override or call, and the function of hypercorn that must use or set them.
USED_NAMES = [
    (TCPServer.run, "_read_data", CONNECTION),
    (TCPServer.run, "_idle_timeout", CONNECTION),
    (TCPServer.run, "_task_group", CONNECTION),
    (TCPServer.run, "protocol_send", CONNECTION),
    (TCPServer.protocol_send, "idle_task", CONNECTION),
    (TCPServer.protocol_send, "send_lock", CONNECTION),
    (ProtocolWrapper.__init__, "protocol", CONNECTION),
    (ProtocolWrapper.__init__, "H11Protocol", PATCHES),
    (H11Protocol._handle_events, "_check_protocol", PATCHES),
    (H11Protocol._create_stream, "WSStream", PATCHES),
    (H11Protocol._create_stream, "stream", CONNECTION),
    (ws_stream.Handshake.accept, "server_extensions_handshake", PATCHES),
    (WSStream.__init__, "app_put", WEBSOCKET),
    (WSStream.__init__, "buffer", WEBSOCKET),
    (WSStream.handle, "_handle_events", WEBSOCKET),
    (WSStream._handle_events, "_send_wsproto_event", WEBSOCKET),
]


@pytest.mark.parametrize(
    ("function", "name", "file"), USED_NAMES, ids=lambda value: getattr(value, "__qualname__", value)
)
def test_hypercorn_uses_the_names_that_are_overridden(function: Callable[..., Any], name: str, file: str) -> None:
    assert isinstance(function, FunctionType)
    assert name in function.__code__.co_names, f"{function.__qualname__} no longer uses {name}: adapt {file}"


# Methods that are replaced, and must follow a change of the original.
REPLACED_METHODS = [
    (TCPServer.run, "efb3f08678870992", CONNECTION),
    (TCPServer.protocol_send, "3e76f5d406b488dc", CONNECTION),
    (TCPServer._read_data, "186621d42f4e72f3", CONNECTION),
    (TCPServer._idle_timeout, "03c66fe7a437b04e", CONNECTION),
    (WSStream.handle, "232d3be5f06cc947", WEBSOCKET),
    (WSStream._handle_events, "6a43195dccede74a", WEBSOCKET),
    (H11Protocol._check_protocol, "102c89c9f13782e5", PATCHES),
]


@pytest.mark.parametrize(
    ("method", "digest", "file"), REPLACED_METHODS, ids=lambda value: getattr(value, "__qualname__", "")
)
def test_methods_of_hypercorn_that_are_replaced_have_not_changed(
    method: Callable[..., Any], digest: str, file: str
) -> None:
    assert code_digest(method) == digest, changed("hypercorn", method.__qualname__, file)


def test_patches_replace_the_classes_that_hypercorn_uses() -> None:
    hypercorn_patches.install()
    assert vars(h11)["WSStream"] is HypercornWebSocket, f"the WebSocket class is not replaced: adapt {PATCHES}"
    assert ProtocolWrapper.__init__.__globals__["H11Protocol"] is hypercorn_patches.Http1OnlyProtocol, (
        f"the HTTP/1 protocol class is not replaced: adapt {PATCHES}"
    )


async def test_worker_context_of_hypercorn_is_drained_by_its_event() -> None:
    context = WorkerContext(None)
    await context.terminated.set()
    with trio.fail_after(60):
        await context.terminated.wait()


def test_wsproto_parses_a_frame_only_when_the_next_event_is_requested() -> None:
    """HypercornWebSocket stops at its limit without parsing the remaining frames."""
    connection = wsproto.connection.Connection(ConnectionType.SERVER)
    connection.receive_data(b"\x81\x81\0\0\0\0a" + b"\xff" * 6)  # a text frame, and an invalid one
    event = next(connection.events())
    assert isinstance(event, Message), f"the first event is {event!r}: adapt {WEBSOCKET}"
    assert (event.data, event.message_finished, event.frame_finished) == ("a", True, True)


class Headers:
    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.pairs.append((name, value))


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b"GET / HTTP/1.1\r\nA: b\r\n\r\n", None),
        (b"UNKNOWN / HTTP/1.1\r\nA: b\r\n\r\n", httptools.HttpParserInvalidMethodError),
        (b"GET / HTTP/1.1\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", httptools.HttpParserUpgrade),
        (b"GET / HTTP/1.1\r\nA b\r\n\r\n", httptools.HttpParserError),
    ],
)
def test_httptools_reports_headers_and_errors_as_before(head: bytes, error: type[Exception] | None) -> None:
    headers = Headers()
    raised: type[Exception] | None = None
    try:
        httptools.HttpRequestParser(headers).feed_data(head)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as caught:
        raised = type(caught)
    assert raised is error or (raised and error and issubclass(raised, error)), (
        f"httptools raised {raised} for {head!r}: adapt _parse_headers in sso/serve/http1/head.py"
    )
    if error in (None, httptools.HttpParserUpgrade):
        assert headers.pairs[0] == (b"A", b"b"), "httptools reports headers differently: adapt sso/serve/http1/head.py"
