"""What a change would do, as pages show it: people and applications by name, and rules without their section."""

from typing import Any

from sso.console.visit import ConsoleVisit
from sso.perm.engine.rules import without_section

MAX_SHOWN = 50  # users


async def impact_values(visit: ConsoleVisit, impact: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of ``_impact.html`` for the response to a dry run."""
    shown = [
        {**change, **{kind: list(dict.fromkeys(map(without_section, change[kind]))) for kind in ("gained", "lost")}}
        for change in impact["users"][:MAX_SHOWN]
    ]
    names = await visit.names(
        {
            "user": [change["user_id"] for change in shown],
            "application": [change.get("application_id") for change in shown],
        }
    )
    return {"impact": {**impact, "users": shown}, "names": names}
