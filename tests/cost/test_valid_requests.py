"""No valid request at the limits costs much. Each must succeed: a request that is refused may be cheap.

A usual run measures every third of them, and a long run (scripts/faults) all.
"""

import itertools

import pytest

from tests.cost.conftest import World
from tests.cost.large_records import create_large_records
from tests.cost.valid_permission_requests import permission_requests
from tests.cost.valid_sign_in_requests import sign_in_requests
from tests.kit.long_tests import takes_long


@pytest.mark.timeout(900)
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
