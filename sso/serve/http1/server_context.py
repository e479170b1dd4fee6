"""State that the server shares with its connections.

It has its own module so that the server can import connections, and connections need not import the server.
"""

from typing import Any, Protocol

from sso.serve.http1.accept import ConnectionLimiter
from sso.serve.http1.admission import Admission
from sso.serve.http1.balance import WorkerSlot
from sso.serve.http1.deadlines import DeadlineClock, HasDeadline
from sso.serve.http1.disconnects import DisconnectWatcher
from sso.serve.http1.frame_waits import FrameWaits
from sso.serve.http1.pacing import RequestPacing
from sso.serve.http1.refusal_pause import RefusalPause
from sso.serve.http1.rejections import RejectionResponses, RequestRejected
from sso.serve.rate_limited_log import RateLimitedLog
from sso.serve.server_limits import ServerLimits


class OpenConnection(HasDeadline, Protocol):
    """The part of a connection that the server uses."""

    def close_if_idle(self, *, include_new: bool) -> None: ...


class ServerContext:
    def __init__(
        self,
        app: Any,
        limits: ServerLimits,
        rejections: RejectionResponses,
        slot: WorkerSlot | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.connections: set[OpenConnection] = set()
        self.clock = DeadlineClock(limits, self.connections)
        self.disconnects = DisconnectWatcher()
        self.frame_waits = FrameWaits()
        self.pacing = RequestPacing()
        self.admission = Admission()
        self.refusal_pause = RefusalPause()
        self.log = RateLimitedLog()
        self.limiter = ConnectionLimiter(limits, slot)
        self.draining = False
        self._rejections = rejections

    def render_rejection(self, rejection: RequestRejected, *, closes: bool = True) -> bytes:
        return self._rejections.render(rejection, self.clock.date_header, closes=closes)
