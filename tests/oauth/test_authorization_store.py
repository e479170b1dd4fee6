"""Concurrent authorizations share a statement, but do not wait for locks on rows of other clients."""

import time
from datetime import timedelta
from ipaddress import IPv4Address
from urllib.parse import urlencode

import pytest
import trio
from msgspec.structs import replace

from sso.accounts.authentication_context import by_password
from sso.accounts.session_store import Session
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.oauth.authorization.authorize import AskConsent, Outcome, ShowSignIn
from sso.oauth.authorization.remembered import RememberedAuthorizations
from sso.oauth.authorization.request import Parameters
from sso.oauth.authorization.response import RedirectTo
from sso.oauth.errors import AuthorizationFinished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, PendingAuthorization
from sso.services import Services
from sso.web.client_address import LOCAL
from tests.kit.builders import add_user
from tests.kit.conditions import LIMIT_S
from tests.oauth.in_process import apply_client

ADDRESS = IPv4Address("127.0.0.1")
_HOLD_CLIENT = Statement("SELECT 1 FROM oauth_clients WHERE client_id = :client_id FOR UPDATE")
_PAUSE = Statement("SELECT pg_sleep(0.01)")
_CONSENTS = Statement("SELECT user_id FROM oauth_consents")


async def new_request(services: Services, client_id: str) -> AuthorizationRequest:
    await apply_client(services, client_id=client_id, redirect_hosts=[f"{client_id}.example.com"])
    query = {
        "response_type": "code", "response_mode": "query", "client_id": client_id, "scope": "openid", "nonce": "n",
        "redirect_uri": f"https://{client_id}.example.com/cb",
    }  # fmt: skip
    parameters = Parameters.read(urlencode(query).encode())
    assert parameters
    authorize = services.oauth.authorize
    return await authorize.validate(parameters, *await authorize.find_client(parameters, LOCAL))


async def begin_while_held(services: Services, session: Session | None) -> list[tuple[str, Outcome]]:
    """Begins authorizations of two clients while a transaction holds a lock on one of the clients."""
    sites = {name: await new_request(services, name) for name in ("held", "free")}
    began: list[tuple[str, Outcome]] = []

    async def hold(tx: Transaction) -> None:
        await tx.value(_HOLD_CLIENT, client_id="held")
        held.set()
        end = time.monotonic() + LIMIT_S
        while not saved.is_set() and time.monotonic() < end:
            await tx.value(_PAUSE)

    async def begin(name: str) -> None:
        began.append((name, await services.oauth.authorize.begin(sites[name], session)))

    held, saved = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.database.transaction, hold)
        await held.wait()
        nursery.start_soon(begin, "held")
        async with trio.open_nursery() as together:
            for _ in range(10):
                together.start_soon(begin, "free")
        saved.set()  # releases the lock
    return began


async def test_saving_a_request_does_not_wait_for_a_lock_on_another_client(services: Services) -> None:
    began = await begin_while_held(services, None)
    assert [name for name, _ in began] == ["free"] * 10 + ["held"]
    assert all(isinstance(outcome, ShowSignIn) for _, outcome in began)


async def test_issuing_a_code_does_not_wait_for_a_lock_on_another_client(services: Services) -> None:
    session = await services.sessions.start(await add_user(services), by_password(), ADDRESS, "")
    began = await begin_while_held(services, session)
    assert [name for name, _ in began] == ["free"] * 10 + ["held"]
    codes = {outcome.url for _, outcome in began if isinstance(outcome, RedirectTo)}
    assert len(codes) == 11


async def test_consent_of_an_ended_session_is_not_saved(services: Services) -> None:
    session = await services.sessions.start(await add_user(services), by_password(), ADDRESS, "")
    request = replace(await new_request(services, "asking"), prompts=frozenset({"consent"}))
    outcome = await services.oauth.authorize.begin(request, session)
    assert isinstance(outcome, AskConsent)
    await services.sessions.end(session.user.user_id, session.id)
    assert isinstance(await services.oauth.authorize.decide(outcome.pending, session, "allow"), ShowSignIn)
    assert await services.database.rows(_CONSENTS) == []
    new_session = await services.sessions.start(session.user, by_password(), ADDRESS, "")
    assert isinstance(await services.oauth.authorize.decide(outcome.pending, new_session, "allow"), RedirectTo)
    assert len(await services.database.rows(_CONSENTS)) == 1


async def pending_and_session(services: Services) -> tuple[PendingAuthorization, Session]:
    outcome = await services.oauth.authorize.begin(await new_request(services, "shop"), None)
    assert isinstance(outcome, ShowSignIn)
    return outcome.pending, await services.sessions.start(await add_user(services), by_password(), ADDRESS, "")


async def test_authorization_that_demands_a_new_sign_in_is_not_finished_as_it_was(services: Services) -> None:
    pending, session = await pending_and_session(services)
    store = services.oauth.authorizations
    await store.require_new_login(pending.id)
    with pytest.raises(AuthorizationFinished):
        await store.issue_code(pending.request, session, pending)
    present = await store.find(pending.id)
    assert present is not None
    assert await store.issue_code(present.request, session, present)


async def test_neither_a_request_nor_a_code_is_stored_for_a_client_of_another_version(services: Services) -> None:
    pending, session = await pending_and_session(services)
    store, stale = services.oauth.authorizations, replace(pending.request, client_version="1")
    with pytest.raises(InvalidRedirectUri):
        await store.save(stale)
    for authorization in (None, pending):
        assert await store.issue_code(stale, session, authorization) is None
    assert await store.issue_code(pending.request, session, pending)  # it is still pending


async def test_authorization_is_remembered_once_and_not_beyond_its_expiry(services: Services) -> None:
    pending, _ = await pending_and_session(services)
    now = services.database.clock.utc()
    remembered = RememberedAuthorizations(services.database)
    for expires, is_known in ((now - timedelta(seconds=1), False), (now + timedelta(minutes=1), True)):
        remembered.put(replace(pending, expires=expires))
        assert (remembered.take(pending.id) is not None) == is_known
        assert remembered.take(pending.id) is None
    remembered.put(replace(pending, expires=now + timedelta(minutes=1)))
    services.database.epoch += 1  # another server may answer now
    assert remembered.take(pending.id) is None
    remembered.put(replace(pending, request=replace(pending.request, state=b"s" * 3000)))
    assert remembered.take(pending.id) is None
