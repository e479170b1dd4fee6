"""What a request to another server may take, its answer, and why there is none."""

from collections.abc import Mapping

from msgspec import Struct, field


class NoAnswer(Exception):
    """The server cannot be reached or does not answer in time. The text contains no secret."""


class UnusableAnswer(Exception):
    """The answer is too long or compressed."""


class AddressRefused(Exception):
    """All addresses of the host are ones that this service must not send requests to."""


class OutgoingLimits(Struct, frozen=True):
    timeout_s: float  # for the whole request
    max_bytes: int  # for the body of an answer; 0: it is not read
    max_requests: int  # at the same time, in this worker
    read_statuses: frozenset[int] | None = None  # the body of other answers is not read; None: that of all is


class OutgoingAnswer(Struct, frozen=True):
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
