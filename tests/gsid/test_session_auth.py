"""Under which name a client is counted and blocked."""

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
from tests.kit.game import public_text, rsa_key, sign

HOME = parse_address("203.0.113.5")
BODY = b"x"
_BLOCK = Statement(
    """INSERT INTO throttle (key, failures, since, blocked_until, expires)
    VALUES (:key, 1, now(), now() + interval '1 min', now() + interval '1 min') RETURNING 1"""
)
_KEPT = Statement("SELECT id FROM game_violations WHERE address = :address")


async def register(services: Services, *, key: bool) -> tuple[str, str]:
    """Its gsid and its secret."""
    made = await services.game.registration.register(LoginOptions(HOME), public_text(rsa_key()) if key else None)
    return made.gsid, made.secret


def asked(gsid: str, *, location: str = "", signed: bool = False) -> SessionRequest:
    signature = sign(rsa_key(), BODY) if signed else None
    return SessionRequest(gsid, HOME, (), None, ClientEvidence(HOME, location or None, signature, signed_bytes=BODY))


async def test_whoever_signs_is_counted_by_the_key_and_any_other_by_the_address(services: Services) -> None:
    """A key is public: whoever registers somebody else's, and polls by other evidence, is not that somebody."""
    admit = services.game.authenticator.authenticate
    by_address = AddressKeys.of(HOME).early_polls
    plain, _ = await register(services, key=False)
    keyed, secret = await register(services, key=True)
    assert (await admit(asked(plain))).early_poll_key == by_address
    assert (await admit(asked(keyed, location=secret))).early_poll_key == by_address
    by_key = (await admit(asked(keyed, signed=True))).early_poll_key
    assert by_key not in (by_address, AddressKeys.of(HOME).refusals, public_der(rsa_key().public_key()))
    other, _ = await register(services, key=True)
    assert (await admit(asked(other, signed=True))).early_poll_key == by_key


async def test_a_blocked_key_stops_those_who_sign_and_a_blocked_address_the_others(services: Services) -> None:
    admit = services.game.authenticator.authenticate
    plain, _ = await register(services, key=False)
    keyed, secret = await register(services, key=True)
    by_key = (await admit(asked(keyed, signed=True))).early_poll_key
    await services.database.value(_BLOCK, key=by_key)
    with pytest.raises(Violation):
        await admit(asked(keyed, signed=True))
    await admit(asked(keyed, location=secret))
    await admit(asked(plain))
    await services.database.value(_BLOCK, key=AddressKeys.of(HOME).early_polls)
    with pytest.raises(Violation):
        await admit(asked(keyed, location=secret))
    with pytest.raises(Violation):
        await admit(asked(plain))
    signing, _ = await register(services, key=True)
    with pytest.raises(Violation):  # still by its key
        await admit(asked(signing, signed=True))


async def test_an_address_that_is_blocked_does_not_stop_those_who_sign(services: Services) -> None:
    await services.database.value(_BLOCK, key=AddressKeys.of(HOME).early_polls)
    keyed, _ = await register(services, key=True)
    await services.game.authenticator.authenticate(asked(keyed, signed=True))


async def test_refusals_that_come_together_share_a_record(services: Services) -> None:
    """Those beyond the first hundred, also if none has been written when the next one comes."""
    records = []

    async def guess() -> None:
        with pytest.raises(Violation) as refused:
            await services.game.authenticator.authenticate(asked("x"))
        records.append(refused.value.message)

    async with trio.open_nursery() as nursery:
        for _ in range(150):
            nursery.start_soon(guess)
    assert len(set(records)) == 101
    kept = await services.database.rows(_KEPT, address=str(HOME))
    assert {row["id"] for row in kept} == set(records)


async def test_0_switches_the_limit_of_new_sessions_off(services: Services) -> None:
    off, two = (GameRateLimiter(services.database, GameRateLimits(most, 10, 60)) for most in (0, 2))
    for _ in range(5):
        await off.count_new_session(HOME)
    await two.count_new_session(HOME)
    await two.count_new_session(HOME)
    with pytest.raises(TooManySessions):
        await two.count_new_session(HOME)
