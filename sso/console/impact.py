"""What a change would do, as pages show it: people and applications by name, and rules without their section."""

from typing import Any

from msgspec.structs import replace

from sso.console.visit import ConsoleVisit
from sso.perm.engine.rules import without_section

MAX_SHOWN = 50  # users
MATCHES = "/conditions/matches"


async def count_matches(visit: ConsoleVisit, conditions: list[Any]) -> dict[str, Any] | None:
    """Returns how many users meet one of the conditions; None without conditions, or if users may not be seen."""
    asked = [condition for condition in conditions if condition]
    if not asked or not visit.may("POST", MATCHES):
        return None
    found: dict[str, Any] = await visit.data("POST", MATCHES, body={"conditions": asked})
    return found


async def impact_values(
    visit: ConsoleVisit,
    impact: dict[str, Any] | None,
    matches: dict[str, Any] | None = None,
    application_id: str | None = None,
) -> dict[str, Any]:
    """Returns the values of ``_impact.html`` for the response to a dry run, if there is one with users.

    ``matches``: how many users meet the conditions of the record. ``application_id``: if it is about one application.
    """
    if impact is None or "users" not in impact:
        return {"impact": None}
    shown = [
        {"application_id": application_id, **change, "gained": _short(change["gained"]), "lost": _short(change["lost"])}
        for change in impact["users"][:MAX_SHOWN]
    ]
    ids = {
        "user": {*(change["user_id"] for change in shown), *(matches["users"] if matches else ())},
        "application": {str(change["application_id"]) for change in shown if change["application_id"]},
    }
    names = await visit.names(ids)
    new = {(kind, id): (f"{kind} {id}", "") for kind in ids for id in ids[kind]}  # the change creates them
    names = replace(names, found={**new, **names.found})
    return {"impact": {**impact, "users": shown, "matches": matches}, "names": names}


def _short(rules: list[str]) -> list[str]:
    return list(dict.fromkeys(map(without_section, rules)))
