"""Concurrent changes of game sessions share a statement: each caller gets the result of its own request."""

from functools import partial
from ipaddress import ip_address

import pytest

from sso.accounts.model import LoginOptions
from sso.core.errors import Unauthorized
from sso.services import Services
from tests.kit.batches import in_one_batch, while_locked
from tests.kit.builders import add_user
from tests.kit.polls import new_session, status


async def test_confirmations_of_several_users_in_one_batch_have_one_winner(services: Services) -> None:
    sessions, users = services.game_login.sessions, [await add_user(services) for _ in range(3)]
    gsid, other = await new_session(services), await new_session(services)
    calls = [partial(sessions.confirm, gsid, user) for user in users] + [partial(sessions.confirm, other, users[0])]
    *decisions, for_other = await in_one_batch(sessions._confirm, calls)
    assert sorted(decisions) == [False, False, True]
    assert for_other
    stored = await sessions.read_for_page(gsid)
    assert stored is not None
    assert stored.user_id == users[decisions.index(True)].user_id


async def test_revoked_user_in_a_batch_does_not_confirm_and_does_not_stop_the_others(services: Services) -> None:
    sessions, revoked, user = services.game_login.sessions, await add_user(services), await add_user(services)
    gsid = await new_session(services)
    await services.users.revoke_all(revoked.user_id)
    calls = [partial(sessions.confirm, gsid, revoked), partial(sessions.confirm, gsid, user)]
    assert await in_one_batch(sessions._confirm, calls) == [False, True]


async def test_all_closes_of_a_session_in_one_batch_succeed_and_the_last_sets_the_state(services: Services) -> None:
    sessions, gsid, expired = services.game_login.sessions, await new_session(services), await new_session(services)
    await services.database.run_sql("UPDATE game_sessions SET ends = now() WHERE gsid = $1", [expired])
    calls = [partial(sessions.close, gsid, state) for state in ("Success", "Success", "Error")]
    assert await in_one_batch(sessions._close, [*calls, partial(sessions.close, expired, "Error")]) == [True] * 3 + [
        False
    ]
    assert await status(services.database, gsid) == "closed"
    lookup = await sessions.find(gsid, b"", signs=False)
    assert lookup.state == "Error"


async def test_last_stage_of_a_batch_is_stored(services: Services) -> None:
    sessions, gsid = services.game_login.sessions, await new_session(services)
    stages = ("opened", "signing_in", "second_factor")
    await in_one_batch(sessions._set_stage, [partial(sessions.set_stage, gsid, stage) for stage in stages])
    socket_session = await services.game_login.socket_store.read(gsid)
    assert socket_session is not None
    assert socket_session.stage == "second_factor"


async def test_sessions_that_are_created_in_one_batch_keep_their_own_values(services: Services) -> None:
    register, sessions = services.game_login.registration.register, services.game_login.sessions
    networks: list[tuple[str, ...]] = [(), ("10.0.0.0/8",), ("10.0.0.0/8", "fc00::/7")]
    options = [LoginOptions(address=ip_address("192.0.2.1"), fixed_ips=ips, distr=str(ips)) for ips in networks]
    created = await in_one_batch(sessions._create, [partial(register, option, None) for option in options])
    for session, option in zip(created, options, strict=True):
        lookup = await sessions.find(session.gsid, b"", signs=False)
        assert lookup.session is not None
        assert (tuple(lookup.session.fixed_ips), lookup.session.distr) == (option.fixed_ips, option.distr)


async def test_confirmation_does_not_wait_for_a_lock_on_another_user(services: Services, dsn: str) -> None:
    sessions, users = services.game_login.sessions, [await add_user(services) for _ in range(3)]
    gsids = [await new_session(services) for _ in users]
    lock = f"SELECT 1 FROM users WHERE user_id = '{users[0].user_id}' FOR UPDATE"
    calls = [partial(sessions.confirm, gsid, user) for gsid, user in zip(gsids, users, strict=True)]
    assert await while_locked(dsn, lock, sessions._confirm, calls) == [True] * 3
    assert [await status(services.database, gsid) for gsid in gsids] == ["confirmed"] * 3


async def test_new_session_does_not_wait_for_a_lock_on_the_guest_of_another_one(services: Services, dsn: str) -> None:
    guests = [(await add_user(services)).user_id for _ in range(2)]
    options, register = LoginOptions(address=ip_address("192.0.2.1")), services.game_login.registration.register
    lock = f"SELECT 1 FROM users WHERE user_id = '{guests[0]}' FOR UPDATE"
    calls = [partial(register, options, None, guest) for guest in (*guests, None)]
    created = await while_locked(dsn, lock, services.game_login.sessions._create, calls)
    lookups = [await services.game_login.sessions.find(session.gsid, b"", signs=False) for session in created]
    assert [lookup.session and lookup.session.link_guest for lookup in lookups] == [*guests, None]


async def test_session_that_links_a_deleted_guest_is_unauthorized(services: Services) -> None:
    options = LoginOptions(address=ip_address("192.0.2.1"))
    with pytest.raises(Unauthorized):
        await services.game_login.registration.register(options, None, "999999")
