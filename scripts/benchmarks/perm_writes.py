"""Measures writes of permissions: the dry run of a role that many users hold, and saves of one user's record."""

import time
from typing import Any

import trio

from scripts.benchmarks.report import Steps, cpu_seconds
from sso.config import load
from sso.db.statement import Statement
from sso.services import open_services
from tests.kit.server import Server
from tests.perm.endpoints.conftest import Studio

USERS = 10_000
ROLES = 100
RULES = 5
ROUNDS = 3
SAVES = 300
AT_ONCE = 1000

_ADD_USERS = Statement(
    """INSERT INTO users (user_id, login, login_key)
    SELECT CAST(7000000 + n AS text), 'holder' || n || '@example.com', 'holder' || n || '@example.com'
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) n"""
)
_ASSIGN = Statement(
    """INSERT INTO role_assignments (user_id, application_id, name, position)
    SELECT CAST(7000000 + n AS text), :application_id, role.name, role.position
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) n, LATERAL
        (VALUES ('role0', 1), ('role' || (1 + n % 40), 2), ('role' || (41 + n % 40), 3)) AS role (name, position)"""
)


def writes(server: Server, studio: Studio, steps: Steps) -> list[dict[str, Any]]:
    steps.next(f"dry run, {USERS:,} users hold the role, {ROLES} roles")
    application_id = _application(studio)
    trio.run(_add_holders, server, application_id)
    rows = [_dry_run(server, studio, application_id)]
    steps.next("saves of one user's record")
    return [*rows, _save(server, studio, application_id)]


def _application(studio: Studio) -> int:
    rules = {f"rule{number}": {"value": True} for number in range(RULES)}
    roles = {f"role{n}": {"name": f"role{n}", "meta": {"private_data": {f"area{n}": rules}}} for n in range(ROLES)}
    return studio.application(private_data={}, roles=roles)


async def _add_holders(server: Server, application_id: int) -> None:
    settings = load(None, server.settings)
    async with open_services(settings, server.settings["SSO_DATABASE_URL"]) as services:
        for first in range(0, USERS, AT_ONCE):
            numbers = {"first": first, "last": first + AT_ONCE - 1}
            await services.database.value(_ADD_USERS, **numbers)
            await services.database.value(_ASSIGN, **numbers, application_id=application_id)


def _dry_run(server: Server, studio: Studio, application_id: int) -> dict[str, Any]:
    rules = {"rule0": {"value": True}, "other": {"value": True, "params": "a"}}
    body = {
        "action": "save",
        "application_id": application_id,
        "data": {"name": "role0", "meta": {"private_data": {"area0": rules}}},
        "options": {"dry_run": True},
    }
    took: list[float] = []
    before = cpu_seconds(server.workers())
    for _ in range(ROUNDS):
        began = time.monotonic()
        response = studio.root.call("roles", **body)
        took.append(time.monotonic() - began)
        assert (response.body["total"], response.body["exact"]) == (USERS, True), response.body
    used = (cpu_seconds(server.workers()) - before) / ROUNDS
    return {
        "what": f"dry run, {USERS:,} holders",
        "roles": ROLES,
        "us": used * 1e6,
        "seconds": sorted(took)[ROUNDS // 2],
    }


def _save(server: Server, studio: Studio, application_id: int) -> dict[str, Any]:
    user = studio.user()
    before, began = cpu_seconds(server.workers()), time.monotonic()
    for number in range(SAVES):
        studio.save_data(user, application_id, roles=[f"role{number % 7}"])
    took, used = time.monotonic() - began, cpu_seconds(server.workers()) - before
    return {"what": "meta/data save", "roles": ROLES, "us": used / SAVES * 1e6, "per second": SAVES / took}
