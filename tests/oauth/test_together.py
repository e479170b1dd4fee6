"""Authorizations share their statements, and nobody waits for what concerns somebody else."""

from dataclasses import replace
from ipaddress import IPv4Address
from urllib.parse import urlencode

import trio

from sso.accounts.sessions import Session
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.oauth.authorization_request import Parameters
from sso.oauth.authorize import AskConsent, Outcome, RedirectTo, ShowSignIn
from sso.oauth.model import AuthorizationRequest
from sso.services import Services
from tests.kit.builders import add_user
from tests.oauth.shop import change

HERE = IPv4Address("127.0.0.1")
_HOLD_CLIENT = Statement("SELECT 1 FROM oauth_clients WHERE client_id = :client_id FOR UPDATE")
_SLEEP = Statement("SELECT pg_sleep(1)")
_CONSENTS = Statement("SELECT user_id FROM oauth_consents")


async def wanted_by(services: Services, client_id: str) -> AuthorizationRequest:
    await change(services, client_id=client_id, redirect_hosts=[f"{client_id}.example.com"])
    query = {
        "response_type": "code", "response_mode": "query", "client_id": client_id, "scope": "openid", "nonce": "n",
        "redirect_uri": f"https://{client_id}.example.com/cb",
    }  # fmt: skip
    parameters = Parameters.read(urlencode(query).encode())
    assert parameters
    authorize = services.oauth.authorize
    return authorize.validate(parameters, *await authorize.find_client(parameters))


async def begin_while_held(services: Services, session: Session | None) -> list[tuple[str, Outcome]]:
    """Two sites at once, while somebody is changing one of them."""
    sites = {name: await wanted_by(services, name) for name in ("held", "free")}
    began: list[tuple[str, Outcome]] = []

    async def hold(tx: Transaction) -> None:
        await tx.value(_HOLD_CLIENT, client_id="held")
        held.set()
        await tx.value(_SLEEP)

    async def begin(name: str) -> None:
        began.append((name, await services.oauth.authorize.begin(sites[name], session)))

    held = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.database.transaction, hold)
        await held.wait()
        with trio.fail_after(0.9):  # before the change is done
            async with trio.open_nursery() as together:
                nursery.start_soon(begin, "held")
                for _ in range(10):
                    together.start_soon(begin, "free")
    return began


async def test_who_begins_does_not_wait_for_another_site(services: Services) -> None:
    began = await begin_while_held(services, None)
    assert [name for name, _ in began] == ["free"] * 10 + ["held"]
    assert all(isinstance(outcome, ShowSignIn) for _, outcome in began)


async def test_who_is_given_a_code_does_not_wait_for_another_site(services: Services) -> None:
    session = await services.sessions.start(await add_user(services), "login", HERE, "")
    began = await begin_while_held(services, session)
    assert [name for name, _ in began] == ["free"] * 10 + ["held"]
    codes = {outcome.url for _, outcome in began if isinstance(outcome, RedirectTo)}
    assert len(codes) == 11


async def test_who_has_been_signed_out_has_agreed_to_nothing(services: Services) -> None:
    session = await services.sessions.start(await add_user(services), "login", HERE, "")
    asking = replace(await wanted_by(services, "asking"), prompts=frozenset({"consent"}))
    outcome = await services.oauth.authorize.begin(asking, session)
    assert isinstance(outcome, AskConsent)
    await services.sessions.end(session.user.user_id, session.id)
    assert isinstance(await services.oauth.authorize.decide(outcome.pending, session, "allow"), ShowSignIn)
    assert await services.database.rows(_CONSENTS) == []
    again = await services.sessions.start(session.user, "login", HERE, "")
    assert isinstance(await services.oauth.authorize.decide(outcome.pending, again, "allow"), RedirectTo)
    assert len(await services.database.rows(_CONSENTS)) == 1
