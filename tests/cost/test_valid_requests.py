"""No valid request at the limits costs much. Each must succeed: a request that is refused may be cheap."""

import itertools
from unittest import mock

import pytest

from sso.admin import schemas
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
