"""How long and how much: the limits of whatever serves."""

from dataclasses import dataclass

from sso.core.net import Network


@dataclass(frozen=True)
class ServerLimits:
    """Times are in seconds, sizes in bytes. For bodies the application has lower ones, and words of its own."""

    keep_alive_s: float = 75.0  # nothing is asked
    head_s: float = 10.0  # from the first byte of a request to the end of its head
    body_s: float = 60.0  # from the head to the end of the body, while somebody waits for it
    write_s: float = 30.0  # for one buffer of an answer
    linger_s: float = 2.0  # after an answer that did not wait for what was still being sent
    undo_s: float = 3.0
    drain_s: float = 7.0  # for requests in flight, of the supervisor's 9
    first_request_s: float = 0.5  # while draining, for a connection that has asked nothing yet

    max_head_bytes: int = 32 * 1024
    max_headers: int = 100
    max_body_bytes: int = 8 * 1024 * 1024
    max_linger_bytes: int = 256 * 1024
    max_chunk_line_bytes: int = 256  # the size of a chunk and its extensions
    max_extension_bytes: int = 4096  # of all chunks of a body
    max_trailer_bytes: int = 4096

    per_address: int = 0  # connections of one address to one worker; 0 is no limit
    exempt: tuple[Network, ...] = ()
