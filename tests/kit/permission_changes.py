"""Schemas, roles and people for tests of permission changes."""

from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator
from tests.perm.changes.conftest import Trial
from tests.perm.endpoints.conftest import ApiUser, Studio

CHAT: dict[str, Any] = {"private_data": {"chat": {name: {"value": False} for name in ("kick", "mute", "ban")}}}


People = tuple[ApiUser, ...]


def chat(**rules: Any) -> dict[str, Any]:
    """The meta of a role with rules of the chat: a flag, or parameters."""
    values = {
        name: {"value": bool(rule), **({"params": rule} if isinstance(rule, str) else {})}
        for name, rule in rules.items()
    }
    return {"private_data": {"chat": values}}


def role(trial: Trial, name: str, **fields: Any) -> dict[str, Any]:
    return {"action": "save", "application_id": trial.applications[0], "data": {"name": name, **fields}}


def assign(trial: Trial, user: ApiUser, *roles: Any) -> None:
    trial.studio.save_data(user, trial.applications[0], roles=list(roles))


@pytest.fixture
def app(studio: Studio) -> int:
    return studio.application(**CHAT)


@pytest.fixture
def trial(studio: Studio, people: People, app: int) -> Trial:
    """An application in which ann is staff, and staff may kick."""
    trial = Trial(studio, people, (app,))
    for name, rules in (("staff", chat(kick=True)), ("helper", chat(mute=True))):
        assert studio.root.call("roles", **role(trial, name, meta=rules)).status == 200
    assign(trial, people[0], "staff")
    return trial


def put(caller: Administrator, app: int, *statements: str, **more: Any) -> httpx.Response:
    body = {"assertions": list(statements), **more}
    return caller.request("PUT", f"/applications/{app}/assertions", json=body)
