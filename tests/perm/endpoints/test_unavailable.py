"""A database that is away is said to be away, wherever in a request it is missed."""

from ipaddress import ip_address
from typing import Any

import pytest

from sso.db.errors import Unavailable
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller


class Away:
    async def load(self, *_: Any) -> None:
        raise Unavailable("gone")


async def test_a_lost_database_is_the_edges_matter() -> None:
    caller = Caller("5", ip_address("127.0.0.1"))
    for wanted in (None, 1, 10):
        with pytest.raises(Unavailable):
            await Authorizer(Away()).standing(caller, wanted)  # type: ignore[arg-type]
