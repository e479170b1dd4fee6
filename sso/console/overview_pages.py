"""The first page of the console: figures for those who may see them, and what else the administrator can do."""

from typing import Any

from msgspec import Struct
from quart import Blueprint, Response, request

from sso.console.sections import OVERVIEW
from sso.console.view import ConsoleView
from sso.core.errors import NotFound
from sso.telemetry.login_funnel import STEPS

BARS = 30  # in a chart: two minutes each
STEP_TITLES = {
    "registered": "Registered",
    "opened": "Opened",
    "signed_in": "Signed in",
    "confirmed": "Confirmed",
    "delivered": "Delivered",
    "closed": "Closed",
}


class Bar(Struct, frozen=True):
    x: float
    y: float
    height: float


class Chart(Struct, frozen=True):
    title: str
    value: str
    unit: str
    bars: tuple[Bar, ...]
    description: str  # for those who do not see the chart
    is_bad: bool = False


def charts(figures: dict[str, Any]) -> list[Chart]:
    minutes = figures["minutes"]
    latency = figures["latency_ms"]
    calls = [us / 1000 / count if count else 0 for us, count in _pairs(minutes, "database_us", "database_calls")]
    return [
        _sum("Sign-ins", minutes["sign_ins"], "last hour"),
        _sum("Failed sign-ins", minutes["failures"], "last hour", is_bad=True),
        _latest("Held polls", minutes["held_polls"], "games waiting"),
        _latest("WebSockets", minutes["sockets"], "open"),
        _sum("Requests", minutes["requests"], "last hour"),
        _chart("Latency", minutes["latency_p95_ms"], *_latency_texts(latency), max),
        _sum("Server errors", minutes["errors"], "last hour", is_bad=True),
        _chart("Database", calls, f"{_last(calls):.1f} ms", "per write", max),
    ]


def funnel(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows with the share of each step in the logins that were registered."""
    return [
        {
            **row,
            "title": row["name"] or "No application",
            "steps": [(STEP_TITLES[step], row[step], _share(row[step], row["registered"])) for step in STEPS],
        }
        for row in rows
    ]


def _share(part: int, whole: int) -> int:
    return min(100, round(100 * part / whole)) if whole else 0


def _pairs(minutes: dict[str, list[int]], one: str, other: str) -> list[tuple[int, int]]:
    return list(zip(minutes[one], minutes[other], strict=True))


def _sum(title: str, values: list[int], unit: str, *, is_bad: bool = False) -> Chart:
    return _chart(title, values, _compact(sum(values)), unit, sum, is_bad=is_bad)


def _latest(title: str, values: list[int], unit: str) -> Chart:
    """The present minute may not be written yet, so the one before counts as well."""
    return _chart(title, values, _compact(max(values[-2:])), unit, max)


def _chart(title: str, values: Any, value: str, unit: str, join: Any, *, is_bad: bool = False) -> Chart:
    width = len(values) // BARS
    joined = [join(values[start : start + width]) for start in range(0, len(values), width)]
    maximum = max(joined) or 1
    step = 100 / len(joined)
    bars = tuple(
        Bar(round(index * step, 2), round(30 - height, 2), round(height, 2))
        for index, height in enumerate(max(1.0, 30 * number / maximum) for number in joined)
    )
    description = f"{title} in the last hour, in steps of two minutes: at most {_compact(max(joined))}"
    return Chart(title, value, unit, bars, description, is_bad and any(joined))


def _last(values: list[float]) -> float:
    return next((value for value in reversed(values) if value), 0.0)


def _latency_texts(latency: dict[str, float | None]) -> tuple[str, str]:
    if latency["p50"] is None or latency["p95"] is None:
        return "–", "no requests in the last hour"
    return f"{latency['p50']:.1f} ms", f"median; 95 % below {latency['p95']:.0f} ms"


def _compact(number: float) -> str:
    """Returns 1234 as 1,234, and 1234567 as 1.2 M."""
    if number < 100_000:
        return f"{number:,.0f}"
    return f"{number / 1000:,.0f} k" if number < 1_000_000 else f"{number / 1_000_000:.1f} M"


def totals(counts: dict[str, int]) -> list[tuple[str, str]]:
    names = {"users": "Users", "applications": "Applications", "projects": "Projects", "oauth_clients": "OAuth clients"}
    return [(title, _compact(counts[table])) for table, title in names.items()]


DAYS = {"1": "today", "7": "7 days", "30": "30 days"}


def overview_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(OVERVIEW)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(OVERVIEW)
        days = request.args.get("days", "7")
        context: dict[str, Any] = {"days": days if days in DAYS else "7", "choices": DAYS}
        if visit.may("GET", "/figures"):
            figures = await visit.data("GET", "/figures", query={"days": context["days"]})
            context |= {
                "charts": charts(figures),
                "funnel": funnel(figures["funnel"]),
                "totals": totals(figures["totals"]),
                "is_new": not (figures["totals"]["projects"] or figures["totals"]["oauth_clients"]),
            }
        return await console.show(visit, "overview/page.html", title="Overview", **context)

    @routes.get("/<path:unknown>")
    async def unknown_page(unknown: str) -> Response:
        await console.open(OVERVIEW)
        raise NotFound("There is no such page in the console.")

    return routes
