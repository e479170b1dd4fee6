"""What commands share: failures that passed through nurseries."""

import pytest
import trio

from sso.cli.context import CommandFailure, plain_failures
from sso.db.errors import Unavailable


async def fail_in_nurseries(error: Exception) -> None:
    async with trio.open_nursery(), trio.open_nursery():
        raise error


@pytest.mark.parametrize("error", [Unavailable("gone"), CommandFailure("no")])
def test_failure_in_nurseries_is_raised_as_itself(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, plain_failures():
        trio.run(fail_in_nurseries, error)
    assert raised.value is error


def test_programming_error_keeps_its_exception_group() -> None:
    with pytest.raises(ExceptionGroup), plain_failures():
        trio.run(fail_in_nurseries, KeyError("x"))
