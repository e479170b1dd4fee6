"""Authentication of a request about a session: the counters that may block its client."""

import pytest
import trio

from sso.accounts.model import LoginOptions
from sso.core.keys import public_der
from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.gsid.client_proof import ClientEvidence
from sso.gsid.errors import TooManySessions, Violation
from sso.gsid.rate_limit import AddressKeys, GameRateLimiter, GameRateLimits
from sso.gsid.session_request import SessionRequest
from sso.services import Services
from tests.kit.game import public_text, sign
from tests.kit.rsa_keys import rsa_key

HOME = parse_address("203.0.113.5")
BODY = b"x"
_BLOCK = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, 1, now(), now() + interval '1 min', now() + interval '1 min') RETURNING 1"""
)
_RECORDS = Statement("SELECT id FROM game_violations WHERE address = :address")


async def register(services: Services, *, key: bool) -> tuple[str, str]:
    """Returns the gsid and the secret."""
    session = await services.game_login.registration.register(
        LoginOptions(HOME), public_text(rsa_key()) if key else None
    )
    return session.gsid, session.secret


def request_for(gsid: str, *, location: str = "", signed: bool = False) -> SessionRequest:
    signature = sign(rsa_key(), BODY) if signed else None
    return SessionRequest(gsid, HOME, (), None, ClientEvidence(HOME, location or None, signature, signed_bytes=BODY))


async def test_early_polls_count_by_key_for_a_signed_request_and_by_address_otherwise(services: Services) -> None:
    """A public key is no secret: a client that registers it without being able to sign must not get it blocked."""
    authenticate = services.game_login.authenticator.authenticate
    by_address = AddressKeys.of(HOME).early_polls
    plain, _ = await register(services, key=False)
    keyed, secret = await register(services, key=True)
    assert (await authenticate(request_for(plain))).early_poll_key == by_address
    assert (await authenticate(request_for(keyed, location=secret))).early_poll_key == by_address
    by_key = (await authenticate(request_for(keyed, signed=True))).early_poll_key
    assert by_key not in (by_address, AddressKeys.of(HOME).refusals, public_der(rsa_key().public_key()))
    other, _ = await register(services, key=True)
    assert (await authenticate(request_for(other, signed=True))).early_poll_key == by_key


async def test_blocked_key_refuses_signed_requests_and_blocked_address_the_others(services: Services) -> None:
    authenticate = services.game_login.authenticator.authenticate
    plain, _ = await register(services, key=False)
    keyed, secret = await register(services, key=True)
    by_key = (await authenticate(request_for(keyed, signed=True))).early_poll_key
    await services.database.value(_BLOCK, key=by_key)
    with pytest.raises(Violation):
        await authenticate(request_for(keyed, signed=True))
    await authenticate(request_for(keyed, location=secret))
    await authenticate(request_for(plain))
    await services.database.value(_BLOCK, key=AddressKeys.of(HOME).early_polls)
    with pytest.raises(Violation):
        await authenticate(request_for(keyed, location=secret))
    with pytest.raises(Violation):
        await authenticate(request_for(plain))
    signing, _ = await register(services, key=True)
    with pytest.raises(Violation):  # its key is still blocked
        await authenticate(request_for(signing, signed=True))


async def test_blocked_address_does_not_refuse_signed_requests(services: Services) -> None:
    await services.database.value(_BLOCK, key=AddressKeys.of(HOME).early_polls)
    keyed, _ = await register(services, key=True)
    await services.game_login.authenticator.authenticate(request_for(keyed, signed=True))


async def test_concurrent_refusals_beyond_the_limit_share_a_record(services: Services) -> None:
    records = []

    async def guess() -> None:
        with pytest.raises(Violation) as error:
            await services.game_login.authenticator.authenticate(request_for("x"))
        records.append(error.value.message)

    async with trio.open_nursery() as nursery:
        for _ in range(150):
            nursery.start_soon(guess)
    assert len(set(records)) == 101
    rows = await services.database.rows(_RECORDS, address=str(HOME))
    assert {row["id"] for row in rows} == set(records)


async def test_limit_of_new_sessions_0_means_no_limit(services: Services) -> None:
    unlimited, two = (GameRateLimiter(services.database, GameRateLimits(limit, 10, 60)) for limit in (0, 2))
    for _ in range(5):
        await unlimited.count_new_session(HOME)
    await two.count_new_session(HOME)
    await two.count_new_session(HOME)
    with pytest.raises(TooManySessions):
        await two.count_new_session(HOME)
