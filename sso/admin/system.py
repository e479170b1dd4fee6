"""/api/admin/system and /api/admin/figures: the state of the installation, and what the service has done."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Generic, TypeVar

import trio
from pydantic import Field

import sso
from sso.admin.answers.service import FiguresJson, SystemJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute
from sso.admin.rights import AdminRight
from sso.db.database import Database
from sso.db.figures import NAMES, FigureStore, FunnelRow
from sso.db.migrate import HEAD
from sso.nodes.installation_store import read_database_state, read_mail_queue, read_totals
from sso.nodes.node_list import Node, load_nodes, notes_on
from sso.nodes.problems import node_problems
from sso.telemetry.request_figures import LATENCY_NAMES, quantile_ms
from sso.web.request_model import WholeNumber

MAX_DAYS = 30
MAX_FUNNEL_ROWS = 100
TOTALS_AGE_S = 5.0
FUNNEL_AGE_S = 20.0


T = TypeVar("T")


class RecentValue(Generic[T]):
    """A value that takes long to read, and may be some seconds old."""

    def __init__(self, read: Callable[[], Awaitable[T]], max_age_s: float) -> None:
        self._read = read
        self._max_age_s = max_age_s
        self._lock = trio.Lock()  # concurrent callers wait for one statement
        self._value: T | None = None
        self._read_at = 0.0

    async def get(self) -> T:
        async with self._lock:
            if self._value is None or trio.current_time() - self._read_at >= self._max_age_s:
                started = trio.current_time()
                self._value = await self._read()
                self._read_at = started
            return self._value


class FiguresQuery(AdminModel):
    days: Annotated[WholeNumber, Field(ge=1, le=MAX_DAYS)] = 7  # in the funnel


class SystemResource:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._figures = FigureStore(database)
        self._totals = RecentValue(partial(read_totals, database), TOTALS_AGE_S)
        self._funnels: dict[int, RecentValue[list[FunnelRow]]] = {}

    async def system(self, request: AdminRequest) -> AdminResponse:
        """Returns nodes, versions, the database and the queue of mails."""
        nodes = await load_nodes(self._database)
        return AdminResponse(
            {
                "data": {
                    "version": sso.__version__,
                    "expected_schema": HEAD,
                    "database": await read_database_state(self._database),
                    "mail": await read_mail_queue(self._database),
                    "nodes": [_node_json(node, nodes) for node in nodes],
                    "problems": [
                        {"name": problem.name, "detail": problem.detail, "advice": problem.advice}
                        for problem in node_problems(nodes)
                    ],
                }
            }
        )

    async def figures(self, request: AdminRequest) -> AdminResponse:
        """Returns sums over all workers: the last 60 minutes, and the steps of logins by games of the last days.

        Totals of more than 10,000 are estimates. Totals and steps are some seconds old: reading them takes long.
        """
        query: FiguresQuery = request.query
        series = await self._figures.last_hour((*NAMES, *LATENCY_NAMES))
        minutes = list(zip(*(series.pop(name) for name in LATENCY_NAMES), strict=True))
        buckets = [sum(counts) for counts in zip(*minutes, strict=True)]
        p95 = [round(quantile_ms(list(counts), 0.95) or 0, 1) for counts in minutes]
        funnel = await self._funnel(query.days).get()
        return AdminResponse(
            {
                "data": {
                    "minutes": {**series, "latency_p95_ms": p95},
                    "latency_ms": {"p50": quantile_ms(buckets, 0.5), "p95": quantile_ms(buckets, 0.95)},
                    "totals": await self._totals.get(),
                    "funnel": [
                        {"application_id": row.application_id, "name": row.name, "store": row.store, **row.steps}
                        for row in funnel
                    ],
                }
            }
        )

    def _funnel(self, days: int) -> RecentValue[list[FunnelRow]]:
        read = partial(self._figures.funnel, days, MAX_FUNNEL_ROWS)
        return self._funnels.setdefault(days, RecentValue(read, FUNNEL_AGE_S))


def _node_json(node: Node, nodes: list[Node]) -> dict[str, Any]:
    return {
        "name": node.name,
        "is_silent": node.is_silent,
        "seen_s_ago": round(node.age_s),
        "up_s": round(node.uptime_s),
        "workers": node.workers,
        "expected_workers": node.expected_workers,
        "held_polls": node.held_polls,
        "sockets": node.sockets,
        "clock_offset_s": round(node.clock_offset_s, 3),
        "hosts": list(node.hosts),
        "versions": list(node.versions),
        "schema_versions": list(node.schema_versions),
        "notes": notes_on(node, nodes),
    }


def system_routes(resource: SystemResource) -> tuple[AdminRoute, ...]:
    view = AdminRight.VIEW_SYSTEM
    return (
        AdminRoute(
            "GET",
            "/system",
            view,
            resource.system,
            answer=AnswerShape(SystemJson),
            summary="Get the state of the installation",
        ),
        AdminRoute(
            "GET",
            "/figures",
            view,
            resource.figures,
            FiguresQuery,
            answer=AnswerShape(FiguresJson),
            summary="Get figures of the service",
        ),
    )
