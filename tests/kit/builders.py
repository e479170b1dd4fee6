"""Builders of test data: a test names only the fields that matter to it."""

import itertools
from typing import Any

from sso.accounts.model import User
from sso.services import Services
from tests.kit.open_services import save_accounts

PASSWORD = "correct horse battery"
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
_numbers = itertools.count(1)


async def add_user(services: Services, **fields: Any) -> User:
    login = fields.pop("login", f"user{next(_numbers)}@example.com")
    record = {"login": login, "password": PASSWORD, "nick": "Ann", **fields}
    await save_accounts(services, {"users": [record]})
    user = await services.users.get_by_login(login)
    assert user is not None
    return user
