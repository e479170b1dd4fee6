"""A lost database is reported as unavailable, also while the rights of a caller are loaded."""

from ipaddress import ip_address
from typing import Any, NoReturn

import pytest

from sso.db.errors import Unavailable
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.stores.facts import StoredFacts


class LostFacts(StoredFacts):
    def __init__(self) -> None:
        pass

    async def load(self, *_: Any) -> NoReturn:
        raise Unavailable("gone")


async def test_caller_rights_raise_unavailable_if_the_database_is_lost() -> None:
    caller = Caller("5", ip_address("127.0.0.1"))
    for application_id in (None, 1, 10):
        with pytest.raises(Unavailable):
            await Authorizer(LostFacts()).caller_rights(caller, application_id)
