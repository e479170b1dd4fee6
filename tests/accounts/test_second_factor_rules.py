"""The rules of second factors, without a server: which codes are accepted, how often, and who must have a factor."""

import secrets
from datetime import UTC, datetime
from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pyotp
import pytest

from sso.accounts.errors import SecondFactorBlocked, SecondFactorNotUsed
from sso.accounts.history.events import EventKind
from sso.accounts.model import User
from sso.accounts.second_factor import codes
from sso.accounts.second_factor.codes import STEP_S, SecondFactors, _matching_step, _shortened, totp_purpose
from sso.accounts.second_factor.recovery_codes import (
    SecondFactorSection,
    displayed_code,
    is_recovery_code,
    normalized_code,
)
from sso.accounts.second_factor.requirement import RequiredOf, SecondFactorRequirement, UsedFactorRequirement
from sso.accounts.second_factor.store import MAX_ATTEMPTS
from sso.services import Services
from tests.kit.builders import TOTP_SECRET, add_user

NOW = 1_700_000_010
ADDRESS = IPv4Address("192.0.2.1")
TOTP = pyotp.TOTP(TOTP_SECRET)


def signed_in(*factors: str, used: bool) -> Any:
    return SimpleNamespace(
        user=SimpleNamespace(second_factors=factors), authentication=SimpleNamespace(has_second_factor=used)
    )


@pytest.mark.parametrize(("steps", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_code_of_a_neighbouring_step_is_accepted(steps: int, is_accepted: bool) -> None:
    expected = NOW // STEP_S + steps
    step = _matching_step(TOTP_SECRET, TOTP.at(expected * STEP_S), NOW)
    assert step == (expected if is_accepted else None)


def test_label_of_an_authenticator_app_is_shortened() -> None:
    assert _shortened("abcdef", 6) == "abcdef"
    assert _shortened("abcdefg", 6) == "abc..."
    assert _shortened("ééé", 12) == "é..."


def test_forms_of_codes() -> None:
    assert normalized_code("123 4-56") == "123456"
    assert [is_recovery_code(text) for text in ("123456789012", "12345678901", "1234567890123", "12345678901x")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert displayed_code("123456789012") == "1234-5678-9012"


@pytest.mark.parametrize("required_of", ["off", "admins", "all"])
async def test_who_must_have_and_use_a_second_factor(required_of: RequiredOf) -> None:
    for is_admin in (True, False):

        async def is_administrator(_user: object, _address: object, is_admin: bool = is_admin) -> bool:
            return is_admin

        applications: Any = SimpleNamespace(is_administrator=is_administrator)
        requirement = SecondFactorRequirement(required_of, applications)
        concerned = required_of == "all" or (required_of == "admins" and is_admin)
        assert await requirement.must_enrol(signed_in(used=False).user, ADDRESS) == concerned
        assert not await requirement.must_enrol(signed_in("totp", used=False).user, ADDRESS)
        assert await requirement.must_prove(signed_in("totp", used=False), ADDRESS) == concerned
        assert not await requirement.must_prove(signed_in("totp", used=True), ADDRESS)
        assert not await requirement.must_prove(signed_in(used=False), ADDRESS)


def test_programs_need_a_used_factor_if_all_must_have_one() -> None:
    UsedFactorRequirement("off", "https://id.example").check(second_factor=False)
    UsedFactorRequirement("admins", "https://id.example").check(second_factor=False)
    requirement = UsedFactorRequirement("all", "https://id.example")
    requirement.check(second_factor=True)
    requirement.check_sign_in(signed_in("totp", used=True))
    for refused in (signed_in("totp", used=False), signed_in(used=True)):
        with pytest.raises(SecondFactorNotUsed):
            requirement.check_sign_in(refused)


async def user_with_app(services: Services) -> User:
    return await add_user(services, totp_secret=TOTP_SECRET)


def code_at(services: Services, steps: int = 0) -> str:
    return TOTP.at(int(services.database.clock.now()) + steps * STEP_S)


async def read_again(services: Services, user: User) -> User:
    again = await services.users.get_by_login(user.login)
    assert again is not None
    return again


async def test_code_of_an_app_works_once(services: Services) -> None:
    factors, user = services.second_factors, await user_with_app(services)
    assert not factors.was_used(user, code_at(services))
    code = code_at(services)
    assert await factors.check(user, f"{code[:3]} {code[3:]}") == "totp"
    assert await factors.check(user, code) == ""
    user = await read_again(services, user)
    assert factors.was_used(user, code)
    assert not factors.was_used(user, "000000" if code != "000000" else "000001")
    assert await factors.check(user, code_at(services, -1)) == ""  # an earlier one is no better
    assert not factors.was_used(await add_user(services), code)
    before = await services.database.run_sql("SELECT * FROM factor_guesses", [])
    for malformed in ("", "12345", "1234567", "12345x", "١٢٣٤٥٦"):
        assert await factors.check(user, malformed) == ""
    assert await services.database.run_sql("SELECT * FROM factor_guesses", []) == before  # they are no attempts
    assert await factors.check(await add_user(services), code) == ""


async def test_wrong_codes_block_the_factor_and_the_user_is_told_once(services: Services) -> None:
    factors, user = services.second_factors, await user_with_app(services)
    wrong = f"{(int(code_at(services)) + 500_000) % 10**6:06}"
    for _ in range(MAX_ATTEMPTS):
        assert await _mails(services) == 0
        assert await factors.check(user, wrong) == ""
    assert await _mails(services) == 1
    with pytest.raises(SecondFactorBlocked):
        await factors.check(user, code_at(services))
    assert await _mails(services) == 1


async def test_correct_code_forgets_the_wrong_ones(services: Services) -> None:
    factors, user = services.second_factors, await user_with_app(services)
    for _ in range(MAX_ATTEMPTS - 1):
        await factors.check(user, "000000" if code_at(services) != "000000" else "000001")
    assert await factors.check(user, code_at(services, 1)) == "totp"
    assert await services.database.run_sql("SELECT * FROM factor_guesses", []) == []


async def _mails(services: Services) -> int:
    rows = await services.database.run_sql("SELECT count(*) FROM outbox", [])
    return int(rows[0][0])


@pytest.fixture
def mailed_code(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(secrets, "randbelow", lambda _: 4711)
    return "004711"


async def test_mailed_code_works_once_and_is_not_sent_again_at_once(services: Services, mailed_code: str) -> None:
    factors, user = services.second_factors, await add_user(services, email_2fa=True)
    assert await factors.code_wait(user) == 0
    assert await factors.send_code(user) == 0
    assert await _mails(services) == 1
    assert 0 < await factors.send_code(user) <= codes.RESEND_S
    assert 0 < await factors.code_wait(user) <= codes.RESEND_S
    assert await _mails(services) == 1
    assert await factors.check(user, "004712") == ""
    assert await factors.check(user, mailed_code) == "email"
    assert await factors.check(user, mailed_code) == ""


async def test_mailed_code_has_six_digits(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit - 1)
    factors, user = services.second_factors, await add_user(services, email_2fa=True)
    await factors.send_code(user)
    assert await factors.check(user, "999999") == "email"


async def test_mailed_code_ends_after_five_attempts(services: Services, mailed_code: str) -> None:
    factors, user = services.second_factors, await add_user(services, email_2fa=True)
    await factors.send_code(user)
    for _ in range(codes.MAX_CODE_ATTEMPTS):
        assert await factors.check(user, "000001") == ""
    assert await factors.check(user, mailed_code) == ""


async def test_recovery_code_replaces_the_others_and_unblocks_them(services: Services) -> None:
    factors, user = services.second_factors, await user_with_app(services)
    recovery = factors._recovery_codes
    first = await recovery.make_new(user)
    made = await recovery.make_new(user)
    assert first
    assert made
    assert len(set(made)) == 10
    assert await _mails(services) == 2
    for _ in range(MAX_ATTEMPTS):
        await factors.check(user, "000000" if code_at(services) != "000000" else "000001")
    assert await factors.check(user, first[0]) == ""
    mails = await _mails(services)
    assert await factors.check(user, made[3]) == "recovery"
    assert await _mails(services) == mails + 1
    assert await recovery.count_left(user.user_id) == 9
    events = await services.database.run_sql("SELECT kind FROM account_events WHERE user_id = $1", [user.user_id])
    assert [row[0] for row in events].count(EventKind.RECOVERY_CODES_CREATED) == 2
    assert [row[0] for row in events].count(EventKind.RECOVERY_CODE_USED) == 1
    section = SecondFactorSection(recovery)
    for factors_of_user, left in ((user.second_factors, 9), ((), 0)):
        session: Any = SimpleNamespace(user=SimpleNamespace(user_id=user.user_id, second_factors=factors_of_user))
        values = await section.values(session, datetime.now(UTC))
        assert values == {"recovery_codes_left": left, "recovery_codes_total": 10}
    assert await factors.check(user, made[3]) == ""
    assert await factors.check(user, code_at(services, 1)) == "totp"
    assert await factors.check(await add_user(services), made[4]) == ""


async def test_wrong_recovery_codes_block_them(services: Services) -> None:
    factors, user = services.second_factors, await user_with_app(services)
    made = await factors._recovery_codes.make_new(user)
    assert made
    before = await _mails(services)
    for _ in range(MAX_ATTEMPTS):
        assert await factors.check(user, "0000-0000-0000") == ""
    assert await _mails(services) == before + 1
    with pytest.raises(SecondFactorBlocked):
        await factors.check(user, made[0])


async def test_uri_of_an_authenticator_app(services: Services) -> None:
    factors: SecondFactors = services.second_factors
    user: Any = SimpleNamespace(login="ann@example.com")
    assert factors.totp_uri(user, TOTP_SECRET).startswith("otpauth://totp/")
    assert "ann%40example.com" in factors.totp_uri(user, TOTP_SECRET)
    assert len(factors.new_totp_secret()) >= 32
    secret = factors.encrypt_totp("1001", TOTP_SECRET)
    assert factors._keyring.decrypt(totp_purpose("1001"), secret) == TOTP_SECRET


async def test_mailed_codes_are_blocked_too(services: Services, mailed_code: str) -> None:
    """A user without a code of an app is refused, and no further code is mailed."""
    factors, user = services.second_factors, await add_user(services, email_2fa=True)
    for _ in range(MAX_ATTEMPTS):
        assert await factors.check(user, "000001") == ""
    for refused in (factors.send_code(user), factors.code_wait(user), factors.check(user, mailed_code)):
        with pytest.raises(SecondFactorBlocked):
            await refused
    assert (codes.CODE_S, codes.RESEND_S, codes.MAX_CODE_ATTEMPTS) == (600, 60, 5)  # docs/accounts.rst
