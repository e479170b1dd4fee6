"""No valid request at the limits costs much. Each must succeed: a request that is refused may be cheap."""

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest
import trio

from sso.admin import schemas
from sso.console.explorer import pages, permissions
from sso.perm.stores import roles
from tests.cost.callers import Caller
from tests.cost.conftest import World
from tests.cost.large_records import create_large_records
from tests.cost.metered_server import MeteredServer
from tests.cost.valid_permission_requests import permission_requests
from tests.cost.valid_sign_in_requests import sign_in_requests
from tests.kit.long_tests import takes_long
from tests.perm.endpoints.conftest import Studio


@pytest.mark.timeout(1800)
@takes_long  # it measures CPU time, to which other tests beside it would add
def test_every_valid_request_is_cheap(world: World) -> None:
    large = create_large_records(world.studio, world.callers["project administrator"], world.callers["player"])
    failures: dict[str, str] = {}
    for request in itertools.chain(sign_in_requests(world), permission_requests(world, large)):
        try:
            cost, bounds = request.measure(world)
        except AssertionError as error:
            failures[request.name] = str(error)
            continue
        if cost.exceeds(bounds):
            failures[request.name] = cost.text(bounds)
    assert not failures, "\n".join(f"{name}: {text}" for name, text in failures.items())


def test_schema_form_that_is_refused_reads_the_roles_once(metered: MeteredServer) -> None:
    with metered.client() as client:
        studio = Studio(metered, client)
        root, path = Caller(studio, "root", studio.root), f"/console/applications/{studio.application()}/schema"
        form = {"csrf": root.csrf, "public_data": "no JSON", "version": "1"}
        with mock.patch.object(schemas, "read_roles", wraps=roles.read_roles) as read_roles:
            answer = client.post(path, data=form, headers=root.headers(path))
    assert (answer.status_code, read_roles.call_count) == (422, 1)


def test_explorer_computes_with_many_rules_in_threads(metered: MeteredServer) -> None:
    on_loop: list[bool] = []

    def seen(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            on_loop.append(trio.lowlevel.in_trio_task())
            return function(*arguments)

        return call

    path = "/console/explorer"
    with metered.client() as client:
        studio = Studio(metered, client)
        root, application = Caller(studio, "root", studio.root), studio.application()
        rules = (f"rule{number}" for number in range(permissions.FEW_RULES + 1))
        studio.role(application, "all", *rules, condition={"everyone": True})
        query = {"user": studio.root.user_id, "application_id": str(application)}
        parts = (permissions, "_reasoned"), (pages, "_shown"), (pages, "_records")
        with ExitStack() as stack:
            for module, name in parts:
                stack.enter_context(mock.patch.object(module, name, seen(getattr(module, name))))
            for page in (path, f"{path}/export.csv"):
                assert "rule0" in client.get(page, params=query, headers=root.headers(page)).text
    assert on_loop == [False] * 4
