"""The permission explorer: one page for a user at a moment, or two of them side by side; and its export."""

from functools import partial
from typing import Any

from msgspec import Struct
from quart import Blueprint, Response, request

from sso.console.explorer.application_field import (
    DEFAULT_APPLICATION,
    application_choices,
    application_name,
    find_application,
)
from sso.console.explorer.comparison import (
    ComparedRule,
    Difference,
    compare_roles,
    compare_rules,
    rule_tree,
)
from sso.console.explorer.permissions import (
    CannotExplore,
    ReasonedRule,
    UserPermissions,
    compute,
    read_permissions,
)
from sso.console.explorer.query import COMPARISONS, OTHER_MOMENT, ExplorerQuery
from sso.console.explorer.who_pages import add_who_pages
from sso.console.sections import EXPLORER
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.web.csv_response import csv_response
from sso.web.redirects import see_other

MAX_SHOWN = 500  # rules of a page; the export has all of them
LEFT_COLUMNS = ("rule", "user", "moment", "extra", "reasons")
COMPARED_COLUMNS = ("rule", "difference", "left", "left_reasons", "right", "right_reasons")


class Explored(Struct, frozen=True):
    """What was found: one side, or two."""

    left: UserPermissions
    application_id: str = DEFAULT_APPLICATION
    right: UserPermissions | None = None
    by_moment: bool = False  # the sides are two moments of one user

    @property
    def labels(self) -> dict[Difference, str]:
        """What the page and the export call a difference."""
        assert self.right is not None
        first, second = (self.left.moment, self.right.moment) if self.by_moment else (self.left.user, self.right.user)
        if self.by_moment:
            first, second = (text if text == "now" else f"at {text}" for text in (first, second))
        return {
            Difference.LEFT: f"Only {first}",
            Difference.RIGHT: f"Only {second}",
            Difference.EXTRA: "Other parameters or end",
            Difference.REASONS: "Other reasons",
            Difference.NONE: "Same",
        }

    @property
    def projects(self) -> set[str]:
        return self.left.projects | (self.right.projects if self.right else set())

    @property
    def size(self) -> int:
        """The number of rules."""
        return len(self.left.rules) + (len(self.right.rules) if self.right else 0)


def explorer_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(EXPLORER)
    add_who_pages(console, routes)

    @routes.get("")
    async def show() -> Response:
        visit = await console.open(EXPLORER)
        query = ExplorerQuery.of(request.args)
        explored, error = None, None
        if query.is_complete:
            try:
                explored = await explore(visit, query)
            except CannotExplore as refused:
                error = refused.error
        return await console.show(
            visit,
            "explorer/page.html",
            title="Permission explorer",
            query=query,
            comparisons=COMPARISONS,
            applications=await application_choices(visit),
            application_name=await application_name(visit, explored.application_id) if explored else "",
            **(await compute(explored.size, partial(_shown, explored, query)) if explored else _nothing(query)),
            **(error.values if error else {}),
        )

    @routes.get("/export.csv")
    async def export() -> Response:
        visit = await console.open_export(EXPLORER)
        query = ExplorerQuery.of(request.args)
        try:
            explored = await explore(visit, query) if query.is_complete else None
        except CannotExplore:
            explored = None
        if explored is None:
            return see_other(f"{EXPLORER.path}?{query.address()}")  # the page says what is missing or wrong
        records = await compute(explored.size, partial(_records, explored, query))
        await visit.operations.exports.write(visit.caller, "permissions", dict(request.args.items()), len(records))
        return csv_response("permissions", COMPARED_COLUMNS if explored.right else LEFT_COLUMNS, records)

    return routes


async def explore(visit: ConsoleVisit, query: ExplorerQuery) -> Explored:
    """Raises CannotExplore."""
    application_id = await find_application(visit, query.application_id)
    left = await read_permissions(visit, query.user, application_id, query.at, query.rule)
    if not query.compare:
        return Explored(left, application_id)
    user, at = query.other
    right = await read_permissions(visit, user, application_id, at, query.rule, "other_")
    return Explored(left, application_id, right, query.compare == OTHER_MOMENT)


def _project_choices(projects: set[str], query: ExplorerQuery) -> list[tuple[str, str]]:
    """The projects of the rules that were found, and the chosen one."""
    return [(project, project) for project in sorted(projects | {query.project} - {""})]


def _nothing(query: ExplorerQuery) -> dict[str, Any]:
    return {"left": None, "project_choices": _project_choices(set(), query)}


def _shown(explored: Explored, query: ExplorerQuery) -> dict[str, Any]:
    """Returns the template values of what was found."""
    values = {
        "left": explored.left,
        "right": explored.right,
        "max_shown": MAX_SHOWN,
        "project_choices": _project_choices(explored.projects, query),
    }
    if explored.right is None:
        rules = _rules(explored, query)
        return values | {"tree": rule_tree(rules[:MAX_SHOWN]), "total": len(rules)}
    rows = compared_rules(explored, query)
    roles = compare_roles(explored.left, explored.right)
    counts: dict[Difference, int] = {}
    for row in compare_rules(explored.left, explored.right):
        counts[row.difference] = counts.get(row.difference, 0) + 1
    return values | {
        "rows": rows[:MAX_SHOWN],
        "total": len(rows),
        "roles": [role for role in roles if not query.differences or role.difference != Difference.NONE],
        "labels": explored.labels,
        "counts": counts,
    }


def _rules(explored: Explored, query: ExplorerQuery) -> list[ReasonedRule]:
    return [rule for rule in explored.left.rules.values() if query.project in ("", rule.project)]


def compared_rules(explored: Explored, query: ExplorerQuery) -> list[ComparedRule]:
    assert explored.right is not None
    return [
        row
        for row in compare_rules(explored.left, explored.right)
        if query.project in ("", row.project) and not (query.differences and row.difference == Difference.NONE)
    ]


def _records(explored: Explored, query: ExplorerQuery) -> list[dict[str, str]]:
    left, right = explored.left, explored.right
    if right is None:
        side = {"user": left.user, "moment": left.moment}
        return [{"rule": rule.name, **side, **_cells(rule)} for rule in _rules(explored, query)]
    labels = explored.labels
    titles = {"left": f"{left.user} {left.moment}", "right": f"{right.user} {right.moment}"}
    return [
        {
            "rule": row.name,
            "difference": labels[row.difference],
            "left": f"{titles['left']}: {_has(row.left)}",
            "left_reasons": _cells(row.left)["reasons"],
            "right": f"{titles['right']}: {_has(row.right)}",
            "right_reasons": _cells(row.right)["reasons"],
        }
        for row in compared_rules(explored, query)
    ]


def _has(rule: ReasonedRule | None) -> str:
    return "no" if rule is None else f"yes {rule.extra}".strip()


def _cells(rule: ReasonedRule | None) -> dict[str, str]:
    if rule is None:
        return {"extra": "", "reasons": ""}
    return {"extra": rule.extra, "reasons": "; ".join(line.text for line in rule.reasons)}
