"""Valid requests that cost more than the bounds, each with the reason. This list should only become shorter.

All of them are writes or reads of administrators of the largest records, which are limited by SSO_RATE_ADMIN and take
turns for the connections for evaluations or management. Times are CPU seconds of the reference machine, outside the
queues, and of the longest step of the event loop.
"""

from typing import NamedTuple

from tests.cost.metered_server import Bounds


class KnownCost(NamedTuple):
    cpu_s: float
    step_s: float
    reason: str


ROLES = "the 1,000 roles are read and decoded several times"
JSON = "the driver encodes and decodes large JSON values on the event loop"
KNOWN_COSTS = {
    "role with the largest condition": KnownCost(0.25, 0.02, ROLES),
    "role with the most rules": KnownCost(0.5, 0.15, JSON),
    "schema of 1 MB": KnownCost(0.45, 0.05, f"{ROLES}; {JSON}"),
    "group with the largest conditions": KnownCost(0.15, 0.03, "18 conditions of 256 nodes are compared and rendered"),
    "small schema": KnownCost(0.5, 0.03, ROLES),
    "data of a user with the most entries": KnownCost(1.3, 0.4, f"{JSON}; changed rules are rendered there"),
    "read the schema": KnownCost(0.1, 0.03, ROLES),
    "client with the most redirect URIs": KnownCost(0.25, 0.1, "each of 4,000 addresses is checked"),
    "state of 4 MB": KnownCost(0.8, 0.25, "it is validated as a whole, in a thread; only root may send a large one"),
    "state with the most records for administrators": KnownCost(1.0, 0.03, "statements for each of 500 records"),
    "membership with the most members": KnownCost(1.6, 0.2, "4,700 members are compared before and after"),
    "membership of many dry run": KnownCost(1.2, 0.35, "4,700 members are compared before and after"),
}
# Pages of one application show its rules, for which they read its roles.
KNOWN_ROUTES = {"/console/applications/<application_id>/": KnownCost(0.1, 0.03, ROLES)}
EVALUATION, EVALUATION_S = "sso.db.database", 12.0  # of a document, whose deadline is longer than that of a request


def with_known_route(rule: str, bounds: Bounds) -> Bounds:
    for prefix, known in KNOWN_ROUTES.items():
        if rule.startswith(prefix):
            return Bounds(max(bounds.cpu_s, known.cpu_s), max(bounds.step_s, known.step_s), bounds.queues)
    return bounds


def with_known_cost(name: str, bounds: Bounds) -> Bounds:
    known = KNOWN_COSTS.get(name)
    if known is None:
        return bounds
    queues = {queue: EVALUATION_S if queue == EVALUATION else limit for queue, limit in bounds.queues.items()}
    return Bounds(max(bounds.cpu_s, known.cpu_s), max(bounds.step_s, known.step_s), queues)
