"""Time and size limits of the HTTP servers."""

from msgspec import Struct

from sso.core.net import Network


class ServerLimits(Struct, frozen=True):
    """Times are in seconds, sizes in bytes. The application has lower limits for bodies, with its own error texts."""

    keep_alive_s: float = 75.0  # without a request
    head_s: float = 10.0  # from the first byte of a request to the end of its head
    body_s: float = 60.0  # from the first read of a body to its end
    write_s: float = 30.0  # during which a client reads nothing of a response
    min_read_bytes_per_s: float = 16 * 1024  # of one buffer of a response; the client has ``write_s`` in addition
    ping_s: float = 12.0  # a WebSocket client that is silent for so long gets a ping; longer than two heartbeats
    pong_s: float = 8.0  # for its answer to the ping, before it is disconnected
    linger_s: float = 2.0  # for reading what a client still sends after it got an early response
    on_response_end_s: float = 3.0  # for the callback after a response
    drain_s: float = 7.0  # for requests in flight; the supervisor allows 9
    first_request_s: float = 0.5  # while draining, for a connection that has not sent a request yet

    max_head_bytes: int = 32 * 1024
    max_headers: int = 100
    max_body_bytes: int = 16 * 1024 * 1024  # more than any route accepts
    max_linger_bytes: int = 256 * 1024
    max_chunk_line_bytes: int = 256  # the size of a chunk and its extensions
    max_extension_bytes: int = 4096  # the extensions of all chunks of a body
    max_trailer_bytes: int = 4096

    per_address: int = 0  # connections of one client address to one worker; 0 means no limit
    exempt: tuple[Network, ...] = ()  # networks without this limit
