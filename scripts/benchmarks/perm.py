"""Measures permissions: the endpoint meta/data (list_short) with many roles, cold and warm, the engine alone, and
writes: the dry run of a role that 10,000 users hold, and saves of one user's record.

A user has three of N roles with conditions. The warm cost should not grow with the number of roles.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import casbin
import httpx
import trio

from scripts.benchmarks.perm_writes import writes
from scripts.benchmarks.report import Steps, arguments, cpu_seconds, show
from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import Assignment, OwnRecord, RoleRecord, Schema
from sso.perm.engine.render import as_list_short
from sso.perm.engine.user_facts import UserFacts
from tests.kit import postgres
from tests.kit.server import QUICK, Server, running
from tests.perm.endpoints.conftest import FACTOR, Studio

SIZES = (10, 100, 1000)
RULES = 5
CONNECTIONS = 16


def role(number: int) -> dict[str, Any]:
    """Returns a role with a condition; those of the first three are met by the user of the benchmark."""
    kinds = (
        {"domain": f"d{number}.example"},
        {"uid": [str(10_000_000 + number)]},
        {"tag": f"tag{number}"},
        {"or": [{"purchase": f"p{number}"}, {"and": [{"tag": f"x{number}"}, {"domain": f"y{number}.example"}]}]},
        {"ip": f"10.{number % 250}.{number // 250}.0/24"},
    )
    condition = {"domain": "example.com"} if number < 3 else kinds[number % len(kinds)]
    rules = {f"rule{at}": {"value": True} for at in range(RULES)}
    return {"name": f"role{number}", "condition": condition, "meta": {"private_data": {f"area{number}": rules}}}


def engine(roles: int, seconds: float) -> dict[str, Any]:
    records = [RoleRecord(**role(number)) for number in range(roles)]
    started = time.process_time()
    application = compile_application(10, 1, Schema(), records)
    facts = PermissionFacts(UserFacts.from_login("1", "ann@example.com"), OwnRecord(roles=(Assignment("role3"),)))
    as_list_short(compute_permissions(application, facts, 0))
    cold = time.process_time() - started
    ours = _repeat(lambda: as_list_short(compute_permissions(application, facts, 0)), seconds)
    enforcer = _casbin(roles)
    theirs = _repeat(lambda: enforcer.get_implicit_permissions_for_user("ann"), seconds)
    return {"what": "engine", "roles": roles, "cold ms": cold * 1e3, "us": ours * 1e6, "pycasbin us": theirs * 1e6,
            "ratio": theirs / ours}  # fmt: skip


def _casbin(roles: int) -> Any:
    """Returns a pycasbin enforcer with the same result: the user has three of as many roles."""
    model = casbin.Enforcer.new_model(
        text="""
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
"""
    )
    enforcer = casbin.Enforcer(model)
    enforcer.add_policies(
        [[f"role{number}", f"area{number}", f"rule{at}"] for number in range(roles) for at in range(RULES)]
    )
    enforcer.add_grouping_policies([["ann", f"role{number}"] for number in range(3)])
    return enforcer


def _repeat(work: Any, seconds: float) -> float:
    """Returns the CPU seconds of one call."""
    count, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for _ in range(20):
            work()
        count += 20
    return (time.process_time() - started) / count


def endpoint(server: Server, studio: Studio, roles: int, seconds: float) -> list[dict[str, Any]]:
    player = studio.user()
    application = studio.application()
    data = {"roles": {f"role{number}": role(number) for number in range(roles)}}
    saved = studio.root.call("meta/schema", action="save", application_id=application, data=data)
    assert saved.status == 200, saved
    body = {"action": "get", "application_id": application, "data": {"type": "list_short"}}
    headers = {"Authorization": f"Bearer {player.jwt}", "Factor": FACTOR}
    workers = server.workers()
    before = cpu_seconds(workers)
    cold = 0
    while cold < 10:
        studio.root.call("roles", action="save", application_id=application, data={"name": "role0"})
        cold += 1
    saving = cpu_seconds(workers) - before
    before = cpu_seconds(workers)
    for _ in range(10):
        studio.root.call("roles", action="save", application_id=application, data={"name": "role0"})
        with server.client() as client:
            assert client.post("/api/permissions/meta/data", json=body, headers=headers).status_code == 200
    once = (cpu_seconds(workers) - before - saving) / 10
    count, took, used = trio.run(_load, server.base_url, body, headers, seconds, workers)
    return [
        {
            "what": "meta/data",
            "roles": roles,
            "cold ms": once * 1e3,
            "us": used / count * 1e6,
            "per second": count / took,
        }
    ]


async def _load(
    base_url: str, body: dict[str, Any], headers: dict[str, str], seconds: float, workers: list[int]
) -> tuple[int, float, float]:
    count = 0

    async def one(client: httpx.AsyncClient, end: float) -> None:
        nonlocal count
        while trio.current_time() < end:
            answer = await client.post("/api/permissions/meta/data", json=body, headers=headers)
            assert answer.status_code == 200
            count += 1

    async with httpx.AsyncClient(base_url=base_url, timeout=20) as client:
        before, started = cpu_seconds(workers), trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(CONNECTIONS):
                nursery.start_soon(one, client, started + seconds)
        return count, trio.current_time() - started, cpu_seconds(workers) - before


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    rows: list[dict[str, Any]] = []
    steps = Steps(2 * len(SIZES) + 2)
    for roles in SIZES:
        steps.next(f"engine, {roles} roles")
        rows.append(engine(roles, options.seconds))
    with postgres.running() as database, tempfile.TemporaryDirectory() as folder:
        settings = QUICK | {"SSO_DATABASE_URL": database.fresh(), "SSO_RATE_LOGIN": "0", "SSO_LOG_LEVEL": "warning"}
        with running(Path(folder), **settings) as server, server.client() as client:
            studio = Studio(server, client)
            for roles in SIZES:
                steps.next(f"meta/data, {roles} roles")
                rows += endpoint(server, studio, roles, options.seconds)
            rows += writes(server, studio, steps)
    names = ("what", "roles", "cold ms", "us", "per second", "seconds", "pycasbin us", "ratio")
    show([{name: row.get(name) for name in names} for row in rows], options.out)


if __name__ == "__main__":
    main()
