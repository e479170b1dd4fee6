"""Replacements of parts of hypercorn that it offers no setting for.

tests/serve/test_private_dependencies.py fails if a new version of hypercorn no longer uses the replaced names.
"""

import h11
from hypercorn import protocol
from hypercorn.protocol import h11 as h11_protocol
from hypercorn.protocol import ws_stream

from sso.serve.hypercorn_websocket import HypercornWebSocket


class Http1OnlyProtocol(h11_protocol.H11Protocol):
    """Hypercorn's own class switches to HTTP/2 if a request asks for h2c or begins with the HTTP/2 preface."""

    async def _check_protocol(self, event: h11.Request) -> None:
        pass


def install() -> None:
    protocol.H11Protocol = Http1OnlyProtocol  # type: ignore[attr-defined]
    h11_protocol.WSStream = HypercornWebSocket  # type: ignore[attr-defined]
    # Compressed frames are not accepted: a small one can expand to a huge one.
    ws_stream.server_extensions_handshake = lambda *_: None  # type: ignore[attr-defined]
