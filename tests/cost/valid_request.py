"""One row of the table of valid requests at the limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from tests.cost.conftest import World
from tests.cost.known_costs import with_known_cost
from tests.cost.metered_server import Bounds, Cost
from tests.cost.queued_work import bounds_of

Options = dict[str, Any]  # of a request of httpx


@dataclass(frozen=True)
class ValidRequest:
    """A request that the service answers with ``status``. ``options`` is called for each repetition of it."""

    name: str
    caller: str
    path: str
    options: Callable[[], Options]
    method: str = "POST"
    status: int = 200

    def measure(self, world: World) -> tuple[Cost, Bounds]:
        """Raises AssertionError if the response has another status: a refusal may be cheap."""
        caller = world.callers[self.caller]

        def send() -> httpx.Response:
            options = self.options()
            headers = {**caller.headers(self.path), **options.pop("headers", {})}
            if "form" in options:
                options["data"] = {"csrf": caller.csrf, **options.pop("form")}
            response = world.client.request(self.method, self.path, headers=headers, **options)
            assert response.status_code == self.status, f"{self.name}: {response.status_code} {response.text[:500]}"
            return response

        first = world.client.build_request(self.method, self.path, **_body(self.options()))
        bounds = bounds_of(self.path, first.content, is_authenticated=caller.is_authenticated)
        bounds = with_known_cost(self.name, bounds)
        cost = world.server.measure_within(bounds, send)
        world.log.add(f"{self.name} by {self.caller}", cost, bounds)
        return cost, bounds


def post(name: str, caller: str, path: str, body: Callable[[], Any] | Any, **fields: Any) -> ValidRequest:
    """A request with a JSON body, which is made anew for each repetition if it is a function."""

    def options() -> Options:
        content = orjson.dumps(body() if callable(body) else body)
        return {"content": content, "headers": {"Content-Type": "application/json"}}

    return ValidRequest(name, caller, path, options, **fields)


def get(name: str, caller: str, path: str, **query: Any) -> ValidRequest:
    return ValidRequest(name, caller, path, lambda: {"params": query}, "GET")


def form(name: str, caller: str, path: str, fields: Callable[[], Any], **more: Any) -> ValidRequest:
    """A form of a page, which gets the CSRF token of the browser."""
    return ValidRequest(name, caller, path, lambda: {"form": fields()}, **more)


def _body(options: Options) -> Options:
    options.pop("headers", None)
    return {"data": options.pop("form")} if "form" in options else options
