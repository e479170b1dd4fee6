"""The work that may cost more than the bounds of a request, because it runs in the threads of a bounded queue.

What a request does elsewhere has no allowance: its CPU time is that of all threads without that of these queues. The
event loop has no allowance either: its longest step is measured by itself.
"""

from typing import NamedTuple

from tests.cost.metered_server import Bounds

UNKNOWN_S, KNOWN_S, STEP_S = 0.020, 0.050, 0.020  # CPU time of a request before and after authentication; of a step


class QueuedWork(NamedTuple):
    queue: str  # the module that has the queue
    cpu_s: float  # the limit for one request in the threads of the queue
    cpu_s_per_mb: float  # and for each megabyte of its body
    routes: tuple[str, ...]  # the beginnings of the paths that use it
    bounded_by: str


QUEUED = (
    QueuedWork("sso.app", 0.1, 0.15, ("/",), "one thread parses bodies, one of each client at a time"),
    QueuedWork(
        "sso.core.passwords", 0.1, 0, ("/login", "/proxy/api/login", "/register", "/reset", "/account", "/api/admin"),
        "slots of the hasher; passwords have at most 1,024 characters",
    ),
    QueuedWork("sso.accounts.second_factor.qr_codes", 0.1, 0, ("/account",), "20 a minute for a user; one thread"),
    QueuedWork("sso.accounts.passkeys.verification", 0.02, 0, ("/account", "/login"), "one thread"),
    QueuedWork("sso.core.signature_verification", 0.02, 0, ("/api", "/proxy"), "one thread"),
    QueuedWork(
        "sso.db.database", 1.0, 0, ("/api/permissions", "/api/admin", "/console"),
        "applications of 1,000 roles are compiled once for a revision; connections for evaluations",
    ),
    QueuedWork("sso.openapi.routes", 1.0, 0, ("/openapi.json",), "the document is built once"),
)  # fmt: skip


def bounds_of(path: str, body: bytes, *, is_authenticated: bool) -> Bounds:
    queues = {
        work.queue: work.cpu_s + work.cpu_s_per_mb * len(body) / 1e6 for work in QUEUED if path.startswith(work.routes)
    }
    return Bounds(KNOWN_S if is_authenticated else UNKNOWN_S, STEP_S, queues)
