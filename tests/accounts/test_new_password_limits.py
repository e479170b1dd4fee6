"""The strength of a new password is estimated after the counters have allowed it."""

import pytest
from zxcvbn_rs_py import zxcvbn

from sso.accounts import password_rules
from sso.accounts.errors import TooManyAttempts
from sso.accounts.login.password_login import NEW_PASSWORDS_PER_MINUTE
from sso.accounts.password_rules import UnacceptablePassword
from sso.core.net import parse_address
from sso.services import Services
from tests.kit.builders import PASSWORD, add_user

HERE = parse_address("192.0.2.1")
WEAK, STRONG = "passwordpassword", "several words without sense"


@pytest.fixture
def estimated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the passwords whose strength was estimated."""
    passwords = []

    def record(password: str, words: list[str]) -> object:
        passwords.append(password)
        return zxcvbn(password, words)

    monkeypatch.setattr(password_rules, "zxcvbn", record)
    return passwords


async def test_change_with_a_wrong_password_estimates_nothing(services: Services, estimated: list[str]) -> None:
    user = await add_user(services)
    change = services.password_login.new_password_hash
    for _ in range(5):
        assert await change(user, "wrong", WEAK, HERE, "device") is None
    with pytest.raises(TooManyAttempts):
        await change(user, PASSWORD, WEAK, HERE, "device")
    assert estimated == []
    with pytest.raises(UnacceptablePassword):
        await change(user, PASSWORD, WEAK, HERE, "another device")
    assert estimated == [WEAK]


async def test_new_passwords_of_an_account_are_limited(services: Services, estimated: list[str]) -> None:
    async def choose(login: str, password: str) -> str:
        return await services.password_login.hash_new_password(password, login, "", HERE)

    for _ in range(NEW_PASSWORDS_PER_MINUTE):
        with pytest.raises(UnacceptablePassword):
            await choose("ann@example.com", WEAK)
    with pytest.raises(TooManyAttempts) as refused:
        await choose("Ann@example.com", STRONG)
    assert 1 <= refused.value.retry_after <= 60
    assert len(estimated) == NEW_PASSWORDS_PER_MINUTE
    assert (await choose("ben@example.com", STRONG)).startswith("$argon2id$")


async def test_address_without_attempts_left_estimates_nothing(services: Services, estimated: list[str]) -> None:
    for number in range(services.settings.rate_login):
        with pytest.raises(UnacceptablePassword):
            await services.password_login.hash_new_password(WEAK, f"user{number}@example.com", "", HERE)
    estimated.clear()
    with pytest.raises(TooManyAttempts):
        await services.password_login.hash_new_password(STRONG, "ann@example.com", "", HERE)
    assert estimated == []
