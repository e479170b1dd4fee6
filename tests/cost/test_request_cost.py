"""No request costs much: every route, with every credential, gets hostile but well-formed inputs near its limits.

The bounds are CPU times of the worker. `tests.cost.queued_work` lists what may cost more, `tests.cost.known_costs` what
does although it should not.
"""

from functools import partial
from typing import Any

import pytest

from scripts.reference_tables.route_limits import body_limits, usual_limit
from sso.app import build_app
from sso.health import Health
from sso.openapi.document import all_operations
from sso.openapi.schemas import SchemaComponents
from sso.telemetry.metrics import Metrics
from sso.web.api_description import ApiOperation
from sso.web.body import BodyLimit
from tests.cost.callers import Caller, Records
from tests.cost.conftest import World
from tests.cost.hostile_inputs import HostileInput, form_bodies, json_bodies, path_of, without_body
from tests.cost.known_costs import with_known_route
from tests.cost.metered_server import MeteredServer
from tests.cost.queued_work import bounds_of
from tests.kit.browser import Forms
from tests.kit.long_tests import takes_long


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
    operations = all_operations(services.management.routes, SchemaComponents())
    described = {(operation.method, operation.path): operation for operation in operations}
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


@pytest.mark.timeout(7200)
@takes_long  # it measures CPU time, to which other tests beside it would add
def test_every_request_is_cheap(world: World) -> None:
    routes = find_routes(world.server)
    forms = console_forms(world.callers["root"], routes, world.records)
    expensive: dict[str, str] = {}
    for route in routes:
        callers = [caller for caller in world.callers.values() if route.is_for_programs or not caller.is_program]
        for caller in callers:
            expensive |= measure(world, route, caller, forms)
    assert not expensive, "\n".join(f"{name}: {text}" for name, text in sorted(expensive.items()))


def measure(world: World, route: Route, caller: Caller, forms: dict[str, dict[str, str]]) -> dict[str, str]:
    """Returns the requests that cost too much or fail, with their costs."""
    expensive: dict[str, str] = {}
    path = path_of(route.rule, world.records.ids)
    fields = {name: value if name == "version" else "" for name, value in forms.get(path, {}).items()}
    if route.operation is not None and route.operation.body is not None:
        schema: Any = route.operation.body.schema
        fields |= dict.fromkeys(schema.get("properties", ()) if isinstance(schema, dict) else schema.model_fields, "")
    if not route.is_for_programs:
        fields["csrf"] = caller.csrf
    for hostile in route.inputs(fields):
        bounds = bounds_of(route.rule, hostile.body, is_authenticated=caller.is_authenticated)
        bounds = with_known_route(route.rule, bounds)
        headers = {**caller.headers(path), **hostile.headers}
        if hostile.content_type:
            headers["Content-Type"] = hostile.content_type
        request = partial(
            world.client.request, route.method, path, params=hostile.query, content=hostile.body, headers=headers
        )
        cost = world.server.measure_within(bounds, request)
        caller.renew(cost.response)
        name = f"{route.name} by {caller.name}, {hostile.name}"
        world.log.add(name, cost, bounds)
        if cost.response.status_code >= 500 or cost.exceeds(bounds):
            expensive[name] = cost.text(bounds)
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
