"""What may cost more than the bounds, because it runs in a bounded queue that takes turns between callers."""

from typing import NamedTuple

from sso.web.body import is_cheap
from tests.cost.hostile_inputs import HostileInput

PARSER_S_PER_MB = 0.25
# The parser thread (`sso.core.fair_thread`) decodes one body at a time and has one body of each client in its queue.
# Its cost grows with the size of the body, so the limits of routes bound it.


class QueuedWork(NamedTuple):
    path: str
    cpu_s: float
    reason: str


QUEUED = (
    QueuedWork("/account/totp", 0.03, "the image of a QR code, on the event loop: no queue yet"),
    QueuedWork("/openapi.json", 1.0, "the document is built once, in a thread"),
    QueuedWork("/api/admin/state", 0.5, "compares or applies a document of the whole service; evaluation connections"),
    QueuedWork("/console/state", 0.5, "as /api/admin/state"),
)


def allowance(path: str, hostile: HostileInput) -> float:
    """Returns the CPU time that a request may need in queues, in seconds."""
    parsing = 0.0 if is_cheap(hostile.body) else PARSER_S_PER_MB * len(hostile.body) / 1e6
    return parsing + sum(work.cpu_s for work in QUEUED if path.startswith(work.path))
