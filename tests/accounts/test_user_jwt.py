"""The user JWT: its claims, and everything that makes it void.

More than 300 lines, because each rule of the verification has its test here.
"""

import json
import time
from typing import Any

import jwt as pyjwt
import pytest
import trio

from sso.accounts.authentication_context import by_password
from sso.accounts.disabling import set_disabled
from sso.accounts.errors import InvalidCredentials
from sso.accounts.model import LoginOptions, SignedIn, User
from sso.accounts.user_jwt import InheritedLimits, JwtUser
from sso.accounts.user_jwt_claims import factor_digest
from sso.accounts.user_store import revoke_everything
from sso.core.jwt import InvalidToken, Signer
from sso.core.keys import GENERATE
from sso.core.net import parse_address
from sso.db.clock import steady_time
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.builders import add_user
from tests.kit.conditions import until_blocking
from tests.kit.operator_changes import set_password

HERE = parse_address("203.0.113.5")
LATE = 2**40  # a database time that does not limit `iat`
SET_VALID_FROM = Statement("UPDATE users SET valid_from = :moment WHERE user_id = :user_id")

_SLEEP_UNTIL_VALID_FROM = Statement(
    """SELECT pg_sleep(greatest(0, valid_from - extract(epoch FROM clock_timestamp()))) FROM users
    WHERE user_id = :user_id"""
)


def issue(services: Services, user: User, **options: Any) -> str:
    options = {"address": HERE, "factor": "device"} | options
    return services.user_jwts.issue(user, LoginOptions(**options), "login", validated_at=LATE)


async def verify(services: Services, token: str, address: str = "203.0.113.5", **options: Any) -> JwtUser:
    options = {"factor": "device"} | options
    return await services.user_jwts.verify(token, parse_address(address), **options)


async def is_void(services: Services, token: str, **options: Any) -> bool:
    try:
        await verify(services, token, **options)
    except InvalidToken:
        return True
    return False


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = pyjwt.decode(token, options={"verify_signature": False})
    return claims


async def reloaded(services: Services, user: User) -> User:
    current = await services.users.get(user.user_id)
    assert current is not None
    return current


def set_time(services: Services, moment: float) -> None:
    now = steady_time()
    services.database.clock.record(now, moment, now)


async def test_verified_jwt_returns_its_user_and_has_an_id_of_its_own(services: Services) -> None:
    user = await add_user(services)
    caller = await verify(services, issue(services, user))
    assert caller.user == user
    assert caller.claims["sub"] == caller.claims["uid"] == user.user_id
    assert len({claims_of(issue(services, user))["jti"] for _ in range(50)}) == 50


async def test_jwt_has_exactly_the_specified_claims(services: Services) -> None:
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
    """Returns the claims of a JWT that derives from another credential."""
    login_options = LoginOptions(address=HERE, factor="device", **options)
    return claims_of(services.user_jwts.issue(user, login_options, auth, validated_at=LATE, inherited=inherited))


async def test_derived_jwt_keeps_the_authentication_time_and_never_outlives_its_limits(services: Services) -> None:
    user = await add_user(services)
    now = int(time.time())
    longest = services.settings.token_max_s
    assert derive(services, user, InheritedLimits(auth_time=now - 100))["auth_time"] == now - 100
    assert derive(services, user, InheritedLimits(ends=now + 60))["exp"] == now + 60
    assert derive(services, user, InheritedLimits(ends=now + 60))["ends"] == now + 60
    assert derive(services, user, InheritedLimits(auth_time=now + 30 - longest))["exp"] == now + 30
    assert "ends" not in derive(services, user, InheritedLimits(auth_time=now + 30 - longest))


ALLOWED: list[tuple[tuple[str, ...] | None, tuple[str, ...], list[str] | None]] = [
    (None, (), None),
    (None, ("10.0.0.0/8",), ["10.0.0.0/8"]),
    (("10.0.0.0/8",), (), ["10.0.0.0/8"]),
    (("10.0.0.0/8", "fc00::/7"), ("10.1.0.0/16", "fd00::/8"), ["10.1.0.0/16", "fd00::/8"]),
    (("10.1.0.0/16",), ("10.0.0.0/8", "192.168.0.0/16"), ["10.1.0.0/16"]),
    (("203.0.113.5/32",), ("10.0.0.0/8",), []),
    ((), (), []),
    ((), ("10.0.0.0/8",), []),
]


async def test_derived_jwt_works_only_from_addresses_of_its_source(services: Services) -> None:
    user = await add_user(services)
    for source, requested, allowed in ALLOWED:
        claims = derive(services, user, InheritedLimits(ips=source), fixed_ips=requested)
        assert claims.get("ips") == allowed, (source, requested)


async def test_expired_for_does_not_extend_the_inherited_end(services: Services) -> None:
    user = await add_user(services)
    now = int(time.time())
    login_options = LoginOptions(address=HERE, factor="device")
    token = services.user_jwts.issue(
        user, login_options, "token", validated_at=LATE, inherited=InheritedLimits(ends=now + 300)
    )
    assert not await is_void(services, token, expired_for=30 * 86400)
    set_time(services, now + 301)
    assert await is_void(services, token, expired_for=30 * 86400)


def test_factor_claim_is_a_digest() -> None:
    assert factor_digest("device-1") == "AyBN6S4R_IxSgTm-QZBlkg64Pb_xpGY7vqRVqm6XAr0"


async def test_wrong_factor_is_rejected_unless_a_service_jwt_replaces_it(services: Services) -> None:
    token = issue(services, await add_user(services))
    for factor in ("other", "", "Device", "device ", "ünï", factor_digest("device")):
        assert await is_void(services, token, factor=factor)
    assert not await is_void(services, token, factor=None)


async def test_jwt_with_ips_works_only_from_these_networks(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user, fixed_ips=("10.0.0.0/8", "203.0.113.5/32", "fc00::/7"))
    for address in ("10.255.0.1", "203.0.113.5", "fd00::1", "::ffff:10.0.0.1"):
        assert not await is_void(services, token, address=address)
    for address in ("11.0.0.1", "203.0.113.6", "fe80::1", "127.0.0.1", "::1", "::ffff:11.0.0.1"):
        assert await is_void(services, token, address=address)
        assert await is_void(services, token, address=address, factor=None)
    assert not await is_void(services, issue(services, user), address="198.51.100.1")
    nowhere = claims_of(issue(services, user)) | {"ips": []}
    assert await is_void(services, services.keys.signer().sign(nowhere))


async def test_jwt_of_a_disabled_user_is_void_and_stays_void(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user)
    await services.database.transaction(set_disabled, user.user_id, disabled=True)
    assert await is_void(services, token)
    await services.database.transaction(set_disabled, user.user_id, disabled=False)
    assert await is_void(services, token)
    assert not await is_void(services, issue(services, await reloaded(services, user)))


async def test_password_change_voids_earlier_jwts_and_no_later_ones(services: Services) -> None:
    """All steps may happen within one second; only their order counts."""
    user = await add_user(services)
    before = issue(services, user)
    await set_password(services, user, await services.hasher.hash("another one"))
    assert await is_void(services, before)
    after = issue(services, await reloaded(services, user))
    assert not await is_void(services, after)


async def test_each_of_several_revocations_within_a_second_voids_jwts(services: Services) -> None:
    user = await add_user(services)
    tokens = []
    for _ in range(3):
        await services.users.revoke_all(user.user_id)
        tokens.append(issue(services, await reloaded(services, user)))
        assert [await is_void(services, token) for token in tokens] == [True] * (len(tokens) - 1) + [False]


async def test_iat_before_valid_from_is_void(services: Services) -> None:
    user = await add_user(services)
    set_time(services, 1_800_000_000.9)
    token = issue(services, user)
    assert claims_of(token)["iat"] == 1_800_000_000
    await services.database.value(SET_VALID_FROM, user_id=user.user_id, moment=1_800_000_000)
    assert not await is_void(services, token)
    await services.database.value(SET_VALID_FROM, user_id=user.user_id, moment=1_800_000_001)
    assert await is_void(services, token)
    # Issued after the change, in the same second.
    changed = await reloaded(services, user)
    set_time(services, 1_800_000_000.1)
    later = issue(services, changed)
    assert (claims_of(later)["iat"], claims_of(later)["rev"]) == (1_800_000_000, 1_800_000_001)
    assert not await is_void(services, later)
    await services.database.value(SET_VALID_FROM, user_id=user.user_id, moment=1_800_000_002)
    assert await is_void(services, later)


async def test_end_sessions_and_apply_void_jwts(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user)
    applier = Applier(services.database, services.hasher, services.operations)
    await applier.apply(parse({"users": [{"login": user.login, "nick": "Other"}]}))
    assert not await is_void(services, token)
    await applier.apply(parse({"users": [{"login": user.login, "password": "another one"}]}))
    assert await is_void(services, token)
    token = issue(services, await reloaded(services, user))
    await services.users.revoke_all(user.user_id)
    assert await is_void(services, token)


async def test_expired_jwt_is_rejected_unless_expired_for_allows_it(services: Services) -> None:
    user = await add_user(services)
    token = issue(services, user)
    end = claims_of(token)["exp"]
    set_time(services, end - 0.5)
    assert not await is_void(services, token)
    set_time(services, end)
    assert await is_void(services, token)
    assert not await is_void(services, token, expired_for=30 * 86400)
    set_time(services, end + 30 * 86400 - 1)
    assert not await is_void(services, token, expired_for=30 * 86400)
    set_time(services, end + 30 * 86400)
    assert await is_void(services, token, expired_for=30 * 86400)


async def test_expired_for_waives_no_other_check(services: Services) -> None:
    user = await add_user(services)
    old = claims_of(issue(services, user, fixed_ips=("10.0.0.0/8",)))
    expired = old | {"iat": old["iat"] - 7200, "exp": old["exp"] - 7200}
    token = services.keys.signer().sign(expired)
    waived = {"expired_for": 30 * 86400, "address": "10.0.0.1"}
    assert not await is_void(services, token, **waived)
    assert await is_void(services, token, **waived, factor="other")
    assert await is_void(services, token, **{**waived, "address": "11.0.0.1"})
    assert await is_void(services, services.keys.signer().sign(expired | {"typ": "id_token"}), **waived)
    await services.database.transaction(set_disabled, user.user_id, disabled=True)
    assert await is_void(services, token, **waived)


async def test_other_token_types_and_issuers_are_rejected(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services)))
    assert not await is_void(services, services.keys.signer().sign(body))
    for typ in ("id_token", "refresh_token", "exchanged_token", "service_token", "access_token", None):
        assert await is_void(services, services.keys.signer().sign(body | {"typ": typ}))
    for issuer in ("https://other.example.com", services.settings.base_url + "/", ""):
        assert await is_void(services, services.keys.signer().sign(body | {"iss": issuer}))


async def test_jwt_signed_with_a_foreign_key_and_other_text_is_rejected(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services)))
    for kid in (services.keys.signer().kid, "unknown"):
        assert await is_void(services, Signer(kid, GENERATE["ES256"](), "ES256").sign(body))
    for token in ("", "x", "a.b.c", "é.é.é", "A" * 100_000):
        assert await is_void(services, token)


async def test_malformed_user_id_is_rejected(services: Services) -> None:
    body = claims_of(issue(services, await add_user(services, user_id="12")))
    spellings = (12, "012", " 12", "12 ", "+12", "１２", "1２", "12\0", "", None, ["12"], 12.0, True, "13")
    for sub in spellings:
        assert await is_void(services, sign_claims(services, body | {"sub": sub}))
    body.pop("sub")
    assert await is_void(services, sign_claims(services, body))


def sign_claims(services: Services, body: dict[str, Any]) -> str:
    """Signs any claims, including those that the JWT library rejects."""
    signer = services.keys.signer()
    return pyjwt.PyJWS().encode(json.dumps(body).encode(), signer.key, signer.algorithm, {"kid": signer.kid})


async def test_small_clock_difference_of_the_issuer_is_tolerated(services: Services) -> None:
    """The clocks of two machines may differ by half a minute."""
    now = time.time()
    user = await add_user(services)
    set_time(services, now + 25)
    token = issue(services, user)
    set_time(services, now)
    assert not await is_void(services, token)
    set_time(services, now + 40)
    ahead = issue(services, user)
    set_time(services, now)
    assert await is_void(services, ahead)


async def login(services: Services, user: User) -> str:
    data = await services.authentication_data.issue(SignedIn(user, by_password()), LoginOptions(HERE, factor="device"))
    return str(data["jwt"])


async def test_jwt_of_a_process_with_a_wrong_clock_does_not_survive_a_password_change(services: Services) -> None:
    for ahead in (-20, 0, 20):
        user = await add_user(services)
        set_time(services, time.time() + ahead)
        token = await login(services, user)
        assert not await is_void(services, token), ahead
        changed = await set_password(services, user, "hash")
        assert changed
        assert await is_void(services, token), ahead
        assert not await is_void(services, await login(services, changed)), ahead


async def test_jwt_does_not_survive_a_password_change_within_its_second(services: Services) -> None:
    """Repeats until the rounds have crossed the boundary between two seconds."""
    user = await add_user(services)
    seconds: set[int] = set()
    while len(seconds) < 2:
        seconds.add(int(time.time()))
        user = await reloaded(services, user)
        token = await login(services, user)
        await set_password(services, user, "hash")
        assert await is_void(services, token)


async def test_revalidate_waits_for_a_concurrent_password_change(services: Services) -> None:
    """The change sets ``valid_from`` before it commits; a token that is issued in between would be younger."""
    user = await add_user(services)
    outcomes: list[object] = []

    async def change(tx: Transaction) -> None:
        await revoke_everything(tx, user.user_id)
        changing.set()
        await until_blocking(tx)
        await tx.value(_SLEEP_UNTIL_VALID_FROM, user_id=user.user_id)

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


async def test_revalidate_returns_the_database_time(services: Services) -> None:
    user = await add_user(services)
    before = await services.database.value(Statement("SELECT CAST(floor(extract(epoch FROM now())) AS bigint)"))
    moment = await services.users.revalidate(user)
    assert moment is not None
    assert 0 <= moment - before <= 1
    await services.database.transaction(set_disabled, user.user_id, disabled=True)
    assert await services.users.revalidate(user) is None
