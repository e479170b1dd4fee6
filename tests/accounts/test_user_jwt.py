"""The user JWT: what it carries, and everything that makes it void."""

import json
import time
from types import SimpleNamespace
from typing import Any

import jwt as pyjwt
import pytest
import trio

from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.accounts.user_jwt import InheritedLimits, JwtUser, factor_digest
from sso.accounts.users import revoke_everything
from sso.core.jwt import InvalidToken, Signer
from sso.core.keys import GENERATE
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.builders import add_user

HERE = parse_address("203.0.113.5")
LATE = 2**40  # a moment of the database that is no limit
SET_VALID_FROM = Statement("UPDATE users SET valid_from = :moment WHERE user_id = :user_id")


def issue(services: Services, user: User, **options: Any) -> str:
    given = {"address": HERE, "factor": "device"} | options
    return services.user_jwts.issue(user, LoginOptions(**given), "login", validated_at=LATE)


async def verify(services: Services, token: str, address: str = "203.0.113.5", **options: Any) -> JwtUser:
    given = {"factor": "device"} | options
    return await services.user_jwts.verify(token, parse_address(address), **given)


async def is_void(services: Services, token: str, **options: Any) -> bool:
    try:
        await verify(services, token, **options)
    except InvalidToken:
        return True
    return False


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = pyjwt.decode(token, options={"verify_signature": False})
    return claims


async def refreshed(services: Services, user: User) -> User:
    found = await services.users.get(user.user_id)
    assert found is not None
    return found


def at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    monkeypatch.setattr("sso.accounts.user_jwt.time", SimpleNamespace(time=lambda: moment))


async def test_it_speaks_for_its_user(services: Services) -> None:
    user = await add_user(services)
    caller = await verify(services, issue(services, user))
    assert caller.user == user
    assert caller.claims["sub"] == caller.claims["uid"] == user.user_id


async def test_it_carries_exactly_the_claims_of_a_user_jwt(services: Services) -> None:
    user = await add_user(services, nick="Ünï 🎮")
    token = services.user_jwts.issue(
        user, LoginOptions(HERE, factor="device", fixed_ips=("10.0.0.0/8",), jwt_public_key="KEY"), "otp", app_id=10,
        validated_at=LATE,
    )  # fmt: skip
    claims = claims_of(token)
    assert claims == {
        "typ": "user_token",
        "iss": services.settings.base_url,
        "sub": user.user_id,
        "uid": user.user_id,
        "iat": claims["iat"],
        "exp": claims["iat"] + services.settings.jwt_ttl_s,
        "kid": services.keys.signer().kid,
        "jti": claims["jti"],
        "nick": "Ünï 🎮",
        "auth": "otp",
        "auth_time": claims["iat"],
        "fac": factor_digest("device"),
        "ips": ["10.0.0.0/8"],
        "pub": "KEY",
        "app_id": 10,
    }
    assert type(claims["iat"]) is type(claims["exp"]) is int
    assert pyjwt.get_unverified_header(token) == {
        "alg": "ES256",
        "typ": "JWT",
        "kid": services.keys.signer().kid,
    }
    assert {"ips", "pub", "app_id", "ends"}.isdisjoint(claims_of(issue(services, user)))


def derive(
    services: Services, user: User, inherited: InheritedLimits, auth: str = "token", **options: Any
) -> dict[str, Any]:
    """The claims of a JWT that is derived from another credential."""
    given = LoginOptions(address=HERE, factor="device", **options)
    return claims_of(services.user_jwts.issue(user, given, auth, validated_at=LATE, inherited=inherited))


async def test_derived_jwt_keeps_the_authentication_time_and_never_outlives_its_limits(services: Services) -> None:
    user = await add_user(services)
    now = int(time.time())
    longest = services.settings.token_max_s
    assert derive(services, user, InheritedLimits(auth_time=now - 100))["auth_time"] == now - 100
    assert derive(services, user, InheritedLimits(ends=now + 60))["exp"] == now + 60
    assert derive(services, user, InheritedLimits(ends=now + 60))["ends"] == now + 60
    assert derive(services, user, InheritedLimits(auth_time=now + 30 - longest))["exp"] == now + 30
    assert "ends" not in derive(services, user, InheritedLimits(auth_time=now + 30 - longest))


@pytest.mark.parametrize(
    ("source", "requested", "allowed"),
    [
        (None, (), None),
        (None, ("10.0.0.0/8",), ["10.0.0.0/8"]),
        (("10.0.0.0/8",), (), ["10.0.0.0/8"]),
        (("10.0.0.0/8", "fc00::/7"), ("10.1.0.0/16", "fd00::/8"), ["10.1.0.0/16", "fd00::/8"]),
        (("10.1.0.0/16",), ("10.0.0.0/8", "192.168.0.0/16"), ["10.1.0.0/16"]),
        (("203.0.113.5/32",), ("10.0.0.0/8",), []),
        ((), (), []),
        ((), ("10.0.0.0/8",), []),
    ],
)
async def test_derived_jwt_works_from_no_address_that_its_source_does_not(
    services: Services, source: tuple[str, ...] | None, requested: tuple[str, ...], allowed: list[str] | None
) -> None:
    claims = derive(services, await add_user(services), InheritedLimits(ips=source), fixed_ips=requested)
    assert claims.get("ips") == allowed


async def test_no_expiry_is_waived_beyond_the_end_that_a_jwt_inherits(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await add_user(services)
    now = int(time.time())
    given = LoginOptions(address=HERE, factor="device")
    token = services.user_jwts.issue(user, given, "token", validated_at=LATE, inherited=InheritedLimits(ends=now + 300))
    assert not await is_void(services, token, expired_for=30 * 86400)
    at(monkeypatch, now + 301)
    assert await is_void(services, token, expired_for=30 * 86400)


async def test_two_of_one_second_have_names_of_their_own(services: Services) -> None:
    user = await add_user(services)
    assert len({claims_of(issue(services, user))["jti"] for _ in range(50)}) == 50


def test_the_factor_travels_as_its_digest() -> None:
    assert factor_digest("device-1") == "AyBN6S4R_IxSgTm-QZBlkg64Pb_xpGY7vqRVqm6XAr0"


async def test_another_factor_is_refused(services: Services) -> None:
    token = issue(services, await add_user(services))
    for factor in ("other", "", "Device", "device ", "ünï", factor_digest("device")):
        assert await is_void(services, token, factor=factor)


async def test_no_factor_is_asked_for_where_a_service_jwt_stands_in_for_it(services: Services) -> None:
    assert not await is_void(services, issue(services, await add_user(services)), factor=None)


async def test_bound_to_addresses_it_works_from_there_only(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user, fixed_ips=("10.0.0.0/8", "203.0.113.5/32", "fc00::/7"))
    for address in ("10.255.0.1", "203.0.113.5", "fd00::1", "::ffff:10.0.0.1"):
        assert not await is_void(services, token, address=address)
    for address in ("11.0.0.1", "203.0.113.6", "fe80::1", "127.0.0.1", "::1", "::ffff:11.0.0.1"):
        assert await is_void(services, token, address=address)
        assert await is_void(services, token, address=address, factor=None)
    assert not await is_void(services, issue(services, user), address="198.51.100.1")


async def test_an_empty_list_of_addresses_lets_nobody_in(services: Services) -> None:
    user = await add_user(services)
    body = claims_of(issue(services, user)) | {"ips": []}
    assert await is_void(services, services.keys.signer().sign(body))


async def test_a_disabled_user_s_is_void_at_once_and_stays_so(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user)
    await services.users.set_disabled(user.user_id, disabled=True)
    assert await is_void(services, token)
    await services.users.set_disabled(user.user_id, disabled=False)
    assert await is_void(services, token)
    assert not await is_void(services, issue(services, await refreshed(services, user)))


async def test_a_changed_password_voids_what_was_issued_before_and_nothing_after(services: Services) -> None:
    """All of it happens within a second or so; which side of the change counts, not which second."""
    user = await add_user(services)
    before = issue(services, user)
    await services.users.set_password(user.user_id, await services.hasher.hash("another one"))
    assert await is_void(services, before)
    after = issue(services, await refreshed(services, user))
    assert not await is_void(services, after)


async def test_each_of_several_changes_within_a_second_voids(services: Services) -> None:
    user = await add_user(services)
    tokens = []
    for _ in range(3):
        await services.users.revoke_all(user.user_id)
        tokens.append(issue(services, await refreshed(services, user)))
        assert [await is_void(services, token) for token in tokens] == [True] * (len(tokens) - 1) + [False]


async def test_iat_is_compared_to_the_second_from_which_tokens_are_valid(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await add_user(services)
    at(monkeypatch, 1_800_000_000.9)
    token = issue(services, user)
    assert claims_of(token)["iat"] == 1_800_000_000
    await services.database.value(SET_VALID_FROM, user_id=user.user_id, moment=1_800_000_000)
    assert not await is_void(services, token)
    await services.database.value(SET_VALID_FROM, user_id=user.user_id, moment=1_800_000_001)
    assert await is_void(services, token)
    # Issued in the rest of that second, after the change.
    later = issue(services, await refreshed(services, user))
    assert claims_of(later)["iat"] == 1_800_000_001
    assert not await is_void(services, later)


async def test_end_sessions_and_apply_void_as_well(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user)
    applier = Applier(services.database, services.hasher, services.keyring)
    await applier.apply(parse({"users": [{"login": user.login, "nick": "Other"}]}))
    assert not await is_void(services, token)
    await applier.apply(parse({"users": [{"login": user.login, "password": "another one"}]}))
    assert await is_void(services, token)
    token = issue(services, await refreshed(services, user))
    await services.users.revoke_all(user.user_id)
    assert await is_void(services, token)


async def test_an_expired_one_is_refused_unless_its_expiry_is_waived(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await add_user(services)
    token = issue(services, user)
    end = claims_of(token)["exp"]
    at(monkeypatch, end - 0.5)
    assert not await is_void(services, token)
    at(monkeypatch, end)
    assert await is_void(services, token)
    assert not await is_void(services, token, expired_for=30 * 86400)
    at(monkeypatch, end + 30 * 86400 - 1)
    assert not await is_void(services, token, expired_for=30 * 86400)
    at(monkeypatch, end + 30 * 86400)
    assert await is_void(services, token, expired_for=30 * 86400)


async def test_the_waiver_waives_nothing_but_the_expiry(services: Services) -> None:
    user = await add_user(services)
    old = claims_of(issue(services, user, fixed_ips=("10.0.0.0/8",)))
    expired = old | {"iat": old["iat"] - 7200, "exp": old["exp"] - 7200}
    token = services.keys.signer().sign(expired)
    waived = {"expired_for": 30 * 86400, "address": "10.0.0.1"}
    assert not await is_void(services, token, **waived)
    assert await is_void(services, token, **waived, factor="other")
    assert await is_void(services, token, **{**waived, "address": "11.0.0.1"})
    assert await is_void(services, services.keys.signer().sign(expired | {"typ": "id_token"}), **waived)
    await services.users.set_disabled(user.user_id, disabled=True)
    assert await is_void(services, token, **waived)


async def test_every_other_kind_of_token_and_issuer_is_refused(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services)))
    assert not await is_void(services, services.keys.signer().sign(body))
    for typ in ("id_token", "refresh_token", "exchanged_token", "service_token", "access_token", None):
        assert await is_void(services, services.keys.signer().sign(body | {"typ": typ}))
    for issuer in ("https://other.example.com", services.settings.base_url + "/", ""):
        assert await is_void(services, services.keys.signer().sign(body | {"iss": issuer}))


async def test_one_signed_with_a_key_that_is_not_ours_is_refused(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services)))
    for kid in (services.keys.signer().kid, "theirs"):
        assert await is_void(services, Signer(kid, GENERATE["ES256"](), "ES256").sign(body))


async def test_no_spelling_of_an_id_stands_for_another_user(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services, user_id="12")))
    spellings = (12, "012", " 12", "12 ", "+12", "１２", "1２", "12\0", "", None, ["12"], 12.0, True, "13")
    for sub in spellings:
        assert await is_void(services, signed(services, body | {"sub": sub}))
    body.pop("sub")
    assert await is_void(services, signed(services, body))


def signed(services: Services, body: dict[str, Any]) -> str:
    """Also with claims that the library would not sign."""
    signer = services.keys.signer()
    return pyjwt.PyJWS().encode(json.dumps(body).encode(), signer.key, signer.algorithm, {"kid": signer.kid})


async def test_what_is_no_jwt_is_refused(services: Services) -> None:
    for token in ("", "x", "a.b.c", "é.é.é", "A" * 100_000):
        assert await is_void(services, token)


async def test_the_clock_of_the_issuer_does_not_matter_much(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a minute of difference between machines is nobody's fault."""
    now = time.time()
    user = await add_user(services)
    at(monkeypatch, now + 25)
    token = issue(services, user)
    at(monkeypatch, now)
    assert not await is_void(services, token)
    at(monkeypatch, now + 40)
    ahead = issue(services, user)
    at(monkeypatch, now)
    assert await is_void(services, ahead)


async def login(services: Services, user: User) -> str:
    data = await services.authentication_data.issue(SignedIn(user, "login"), LoginOptions(HERE, factor="device"))
    return str(data["jwt"])


@pytest.mark.parametrize("ahead", [-20, 0, 20])
async def test_a_clock_that_is_off_lets_no_token_survive_a_password_change(
    services: Services, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    user = await add_user(services)
    at(monkeypatch, time.time() + ahead)
    token = await login(services, user)
    assert not await is_void(services, token)
    changed = await services.users.set_password(user.user_id, "hash")
    assert changed
    assert await is_void(services, token)
    assert not await is_void(services, await login(services, changed))


async def test_no_token_survives_a_password_change_within_its_second(services: Services) -> None:
    """Around the boundary too: some of these fall on it."""
    user = await add_user(services)
    for _ in range(40):
        user = await refreshed(services, user)
        token = await login(services, user)
        await services.users.set_password(user.user_id, "hash")
        assert await is_void(services, token)
        await trio.sleep(0.03)


async def test_what_is_issued_while_a_password_is_being_changed_waits_for_it(services: Services) -> None:
    """The moment of the change is chosen before it is committed: a token of in between would be younger."""
    user = await add_user(services)
    outcomes: list[object] = []

    async def change(tx: Transaction) -> None:
        await revoke_everything(tx, user.user_id)
        changing.set()
        await tx.value(Statement("SELECT pg_sleep(1.2)"))

    async def issue_meanwhile() -> None:
        await changing.wait()
        with pytest.raises(InvalidCredentials):
            await login(services, user)
        outcomes.append(await services.users.revalidate(user))

    changing = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(issue_meanwhile)
        await services.database.transaction(change)
    assert outcomes == [None]


async def test_the_database_vouches_with_its_own_clock(services: Services) -> None:
    user = await add_user(services)
    before = await services.database.value(Statement("SELECT CAST(floor(extract(epoch FROM now())) AS bigint)"))
    moment = await services.users.revalidate(user)
    assert moment is not None
    assert 0 <= moment - before <= 1
    await services.users.set_disabled(user.user_id, disabled=True)
    assert await services.users.revalidate(user) is None
