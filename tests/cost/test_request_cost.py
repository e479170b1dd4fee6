"""No request costs much: every route, with every credential, gets hostile but well-formed inputs near its limits.

The bounds are CPU times of the worker. `tests.cost.queued_work` lists what may cost more. A usual run sends one input
with two of the credentials to each route; a long run (scripts/faults) sends all of them.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import orjson
import pytest
import structlog

from scripts.reference_tables.route_limits import body_limits, usual_limit
from sso.app import build_app
from sso.health import Health
from sso.log import configure_logging
from sso.metrics import Metrics
from sso.openapi.document import all_operations
from sso.perm.input.questions import MAX_QUESTIONS, MAX_QUESTIONS_WITH_REASON
from sso.web.api_description import ApiOperation
from sso.web.body import BodyLimit
from tests.cost.callers import Caller, Records, create_callers
from tests.cost.hostile_inputs import HostileInput, form_bodies, json_bodies, path_of, without_body
from tests.cost.metered_server import MeteredServer
from tests.cost.queued_work import allowance
from tests.kit import postgres
from tests.kit.browser import Forms
from tests.kit.long_tests import usual_part
from tests.kit.server import QUICK
from tests.openapi.test_fuzz import NO_LIMITS
from tests.perm.endpoints.conftest import Studio

UNKNOWN_S, KNOWN_S, STEP_S = 0.020, 0.050, 0.020  # CPU time of a request before and after authentication; of a step


@pytest.fixture(scope="module")
def metered(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeteredServer]:
    dsn = postgres_server.fresh()
    settings = QUICK | NO_LIMITS | {"SSO_DATABASE_URL": dsn, "SSO_GSID_HOLD_S": "1"}
    server = MeteredServer(tmp_path_factory.mktemp("metered"), settings)
    previous = structlog.get_config()
    configure_logging("json", "warning")
    server.start()
    yield server
    server.stop()
    structlog.configure(**previous)
    postgres_server.drop(dsn)


class Route:
    def __init__(self, method: str, rule: str, operation: ApiOperation | None, limit: BodyLimit) -> None:
        self.method, self.rule, self.operation, self.limit = method, rule, operation, limit

    @property
    def name(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def is_for_programs(self) -> bool:
        return self.rule.startswith(("/api/", "/proxy/"))

    def inputs(self, fields: dict[str, str]) -> list[HostileInput]:
        if self.method == "GET" or (self.operation is not None and self.operation.body is None):
            return list(without_body(self._query_names()))
        body = self.operation.body if self.operation else None
        if body is None or "application/json" not in body.media_types:
            return list(form_bodies(fields, self.limit.max_bytes))
        example: Any = next(iter(body.examples.values()), {})
        return list(json_bodies(example, self.limit))

    def _query_names(self) -> list[str]:
        if self.operation is None:
            return ["q", "after", "at", "user", "application_id"]
        names = [parameter.name for parameter in self.operation.parameters if parameter.location == "query"]
        return names + list(self.operation.query.model_fields if self.operation.query else ())


def find_routes(server: MeteredServer) -> list[Route]:
    services = server.services
    described = {
        (operation.method, operation.path): operation for operation in all_operations(services.management.routes)
    }
    limits = body_limits(services)
    routes = []
    for rule in build_app(services, Health(), Metrics()).url_map.iter_rules():
        if rule.websocket:
            continue
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            operation = described.get((method, rule.rule))
            limit = limits.get((method, rule.rule), BodyLimit(usual_limit(rule.rule)))
            routes.append(Route(method, rule.rule, operation, limit))
    return routes


@dataclass(frozen=True)
class World:
    server: MeteredServer
    client: httpx.Client
    callers: list[Caller]
    records: Records


@pytest.fixture(scope="module")
def world(metered: MeteredServer) -> Iterator[World]:
    with metered.client() as client:
        callers, records = create_callers(metered, Studio(metered, client))
        yield World(metered, client, callers, records)


def test_reading_permissions_at_a_large_application_is_cheap(world: World) -> None:
    """Also those of the past, with explanations, and many questions at once."""
    player, application = world.callers[1], world.records.application_id
    assert player.user is not None
    question = {"rule": "private_data.rule10_1", "user_id": player.user.user_id}
    get = {"action": "get", "application_id": application, "data": {"type": "list"}}
    bodies = [
        ("meta/data", get | {"options": {"explain": True}}),
        ("meta/data", get | {"options": {"explain": "rule10_1"}}),
        ("meta/data", get | {"options": {"at": int(time.time()) - 1}}),
        ("meta/data", get | {"options": {"at": int(time.time()) - 1, "explain": True}}),
        ("check", {"application_id": application, "data": {"questions": [question] * MAX_QUESTIONS}}),
        (
            "check",
            {
                "application_id": application,
                "data": {"questions": [question] * MAX_QUESTIONS_WITH_REASON},
                "options": {"reason": True},
            },
        ),
    ]
    expensive = {}
    for path, body in bodies:
        path, content = f"/api/permissions/{path}", orjson.dumps(body)
        headers = player.headers(path) | {"Content-Type": "application/json"}
        request = partial(world.client.post, path, content=content, headers=headers)
        cost = world.server.measure_within(KNOWN_S, STEP_S, request)
        assert cost.response.status_code == 200, cost.response.text
        if cost.exceeds(KNOWN_S, STEP_S):
            expensive[content[:200]] = f"{cost.cpu_s * 1e3:.0f} ms, step {cost.longest_step_s * 1e3:.0f} ms"
    assert not expensive


@pytest.mark.timeout(900)
def test_every_request_is_cheap(world: World) -> None:
    routes = find_routes(world.server)
    forms = console_forms(world.callers[-1], routes, world.records)
    expensive: dict[str, str] = {}
    number = 0
    for route in routes:
        callers = [caller for caller in world.callers if route.is_for_programs or not caller.is_program]
        for caller in usual_part(callers, 2, number):
            expensive |= measure(world, route, caller, forms, number)
            number += 1
    assert not expensive, "\n".join(f"{name}: {text}" for name, text in sorted(expensive.items()))


def measure(
    world: World, route: Route, caller: Caller, forms: dict[str, dict[str, str]], number: int
) -> dict[str, str]:
    """Returns the requests that cost too much or fail, with their costs."""
    expensive: dict[str, str] = {}
    path = path_of(route.rule, world.records.ids)
    fields = {name: value if name == "version" else "" for name, value in forms.get(path, {}).items()}
    if route.operation is not None and route.operation.body is not None:
        schema: Any = route.operation.body.schema
        fields |= dict.fromkeys(schema.get("properties", ()) if isinstance(schema, dict) else schema.model_fields, "")
    if not route.is_for_programs:
        fields["csrf"] = caller.csrf
    inputs = route.inputs(fields)
    for hostile in usual_part(inputs, 1, number):
        bound = (KNOWN_S if caller.is_authenticated else UNKNOWN_S) + allowance(route.rule, hostile)
        headers = {**caller.headers(path), **hostile.headers}
        if hostile.content_type:
            headers["Content-Type"] = hostile.content_type
        request = partial(
            world.client.request, route.method, path, params=hostile.query, content=hostile.body, headers=headers
        )
        cost = world.server.measure_within(bound, STEP_S, request)
        caller.renew(cost.response)
        status = cost.response.status_code
        if status >= 500 or cost.exceeds(bound, STEP_S):
            expensive[f"{route.name} by {caller.name}, {hostile.name}"] = (
                f"{cost.cpu_s * 1e3:.0f} ms, longest step {cost.longest_step_s * 1e3:.0f} ms (status {status})"
            )
    return expensive


def console_forms(root: Caller, routes: list[Route], records: Records) -> dict[str, dict[str, str]]:
    """The fields of the forms of all pages of the console, by the path that they are sent to."""
    forms: dict[str, dict[str, str]] = {}
    for route in routes:
        if route.method == "GET" and route.rule.startswith("/console"):
            page = root.browser.get(path_of(route.rule, records.ids))
            if page.status_code == 200 and "text/html" in page.headers["Content-Type"]:
                for action, found in Forms(page.text).by_action.items():
                    forms.setdefault(action, {}).update(found[0])
    return forms
