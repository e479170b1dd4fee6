"""Administrators merge users and undo it: nothing is lost or overwritten, and no rights are gained by the way."""

import random
from collections.abc import Awaitable, Iterator
from typing import Any

import httpx
import pytest
import trio

from sso.accounts.authentication_context import by_device_key
from sso.accounts.model import LoginOptions, User
from sso.audit.trail import AuditActor
from sso.core.net import parse_address
from sso.db.connection_share import ConnectionShare
from sso.db.errors import Unavailable
from sso.db.statement import Statement
from sso.db.transaction import Runner, Transaction
from sso.personal_data.erasure import erase_at_once
from sso.players import device_key_store, guest_expiry, links
from sso.players.device_key_store import BEFORE_ALL_KEYS, KeyPosition, delete_key, unseen_guests
from sso.players.guest_linking import preview_merge
from sso.players.merge import Moves, actor_mode
from sso.services import Services
from tests.admin.conftest import Administrator, administrator
from tests.console.conftest import ConsoleBrowser
from tests.kit.browser import new_user, query
from tests.kit.builders import add_user
from tests.kit.conditions import until_blocking, until_true
from tests.kit.guest import Device
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.server import Server
from tests.kit.session_tokens import new_application
from tests.perm.endpoints.conftest import FACTOR as STUDIO_FACTOR
from tests.perm.endpoints.conftest import Studio
from tests.upstream.stores import SteamStore, add_store, link_account, opened

ROLES = ("a", "b", "c")


@pytest.fixture(scope="module")
def studio(server: Server) -> Iterator[Studio]:
    with server.client() as client:
        yield Studio(server, client)


@pytest.fixture(scope="module")
def root(studio: Studio) -> Administrator:
    return Administrator.of(studio.root)


def merge(caller: Administrator, user_id: str, into: str, **query: str) -> httpx.Response:
    return caller.request("POST", f"/users/{user_id}/merge", params=query, json={"into": into})


def unmerge(caller: Administrator, into: str, user_id: str) -> httpx.Response:
    return caller.request("POST", f"/users/{into}/unmerge", json={"from": user_id})


def permissions(root: Administrator, user_ids: list[str], applications: list[int]) -> list[Any]:
    return [
        root.data(f"/users/{user_id}/permissions", application_id=str(application))
        for user_id in user_ids
        for application in applications
    ]


def give(server: Server, user_id: str, application: int, **data: Any) -> None:
    server.apply({"permissions": [{"user_id": user_id, "application_id": application, "data": data}]})


def new_games(server: Server, count: int) -> list[int]:
    games = [new_application(server) for _ in range(count)]
    conditional = {"name": "vip", "condition": {"tag": "vip"}, "meta": {"private_data": {"lounge": {"value": True}}}}
    roles = [{"name": name, "meta": {"private_data": {name: {"value": True}}}} for name in ROLES]
    server.apply({"roles": {str(game): [*roles, conditional] for game in games}})
    return games


def test_merge_moves_and_undo_restores(server: Server, root: Administrator, studio: Studio) -> None:
    """Random users: after merge and undo, both have the permissions of before."""
    rng = random.Random(32)
    games = new_games(server, 3)
    for _ in range(4 if IS_LONG_RUN else 2):
        device = Device()
        guest = device.sign_in(studio.client)["user_id"]
        account = studio.user().user_id
        for user_id in (guest, account):
            for game in games:
                if rng.random() < 0.6:
                    give(server, user_id, game, roles=rng.sample(ROLES, rng.randint(0, 3)))
                if rng.random() < 0.4:
                    give(server, user_id, game, public_data={"level": {"value": rng.random() < 0.5}})
        tags = rng.sample(["vip", "beta"], rng.randint(0, 2))
        assert root.request("PATCH", f"/users/{guest}", json={"tags": ["guest", *tags]}).status_code == 200
        before = permissions(root, [guest, account], games)
        preview = merge(root, guest, account, dry_run="1").json()
        assert permissions(root, [guest, account], games) == before
        done = merge(root, guest, account)
        assert done.status_code == 200, done.text
        assert done.json()["moves"] == preview["moves"]
        assert root.data(f"/users/{guest}")["merged_into"] == account
        assert device.sign_in(studio.client)["user_id"] == account
        assert permissions(root, [guest], games) == permissions(root, [account], games)
        held = {rule for rules in permissions(root, [account], games) for rule in rules}
        assert held >= {rule for rules in before[: len(games)] for rule in rules if rule.endswith(ROLES)}
        undone = unmerge(root, account, guest)
        assert undone.json()["data"] == {"changed": []}
        assert permissions(root, [guest, account], games) == before
        assert device.sign_in(studio.client)["user_id"] == guest
        assert root.data(f"/users/{guest}")["merged_into"] is None
    types = [row["type"] for row in query(server, "SELECT type FROM change_events ORDER BY position")]
    assert {"user_merged", "user_unmerged"} <= set(types)


def test_questions_about_a_merged_user_are_about_the_account(
    server: Server, root: Administrator, studio: Studio
) -> None:
    """Also those about an account that was merged itself, and after the account has changed."""
    (game,) = new_games(server, 1)
    guest, middle = Device().sign_in(studio.client)["user_id"], Device().sign_in(studio.client)["user_id"]
    account = studio.user().user_id

    def answers(user_id: str) -> list[Any]:
        questions = [{"user_id": user_id, "application_id": game, "rule": rule} for rule in ("a", "b")]
        checked = studio.root.call("check", data={"questions": questions}).data
        fields: dict[str, Any] = {"application_id": game, "type": "list_short", "data": {"user_id": user_id}}
        listed = studio.root.call("meta/data", action="get", **fields).data
        evaluated = studio.client.post(
            "/access/v1/evaluation",
            headers={"Authorization": f"Bearer {studio.root.jwt}", "Factor": STUDIO_FACTOR},
            json={
                "subject": {"type": "user", "id": user_id},
                "resource": {"type": "application", "id": str(game)},
                "action": {"name": "a"},
            },
        ).json()["decision"]
        return [[item["allow"] for item in checked], listed, evaluated]

    assert answers(guest) == [[False, False], [], False]  # and caches them
    merge(root, guest, middle)
    merge(root, middle, account)
    for role, expected in (
        ("a", [[True, False], ["private_data.a"], True]),
        ("b", [[False, True], ["private_data.b"], False]),
    ):
        give(server, account, game, roles=[role])
        assert answers(guest) == answers(middle) == answers(account) == expected


def test_data_of_a_merged_user_cannot_be_saved(server: Server, root: Administrator, studio: Studio) -> None:
    (game,) = new_games(server, 1)
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    fields: dict[str, Any] = {"action": "save", "application_id": game}
    data = {"user_id": guest, "roles": ["a"]}
    assert studio.root.call("meta/data", **fields, data=data).status == 200
    merge(root, guest, account)
    refused = studio.root.call("meta/data", **fields, data=data | {"roles": ["b"]})
    assert (refused.status, "user_id: the user was merged into another one" in refused.body["error"]) == (409, True)
    body = {"application_id": game, "public_data": {"level": {"value": True}}}
    assert root.request("PATCH", f"/users/{guest}/permissions", json=body).status_code == 409
    # A document is applied without the record: a merge by a player must not stop it.
    server.apply({"permissions": [{"user_id": guest, "application_id": game, "data": {"roles": ["b"]}}]})
    assert permissions(root, [guest, account], [game]) == [["private_data.a"]] * 2
    assert unmerge(root, account, guest).json()["data"] == {"changed": []}
    assert studio.root.call("meta/data", **fields, data=data | {"roles": ["b"]}).status == 200


def test_what_was_changed_since_the_merge_is_reported_and_kept(
    server: Server, root: Administrator, studio: Studio
) -> None:
    (game,) = new_games(server, 1)
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    give(server, guest, game, roles=["a", "b"], public_data={"level": {"value": True}})
    merge(root, guest, account)
    give(server, account, game, roles=["a"], public_data={"level": {"value": False}})
    link = root.data(f"/users/{account}/links")[0]
    assert link["kind"] == "key"
    assert root.request("DELETE", f"/users/{account}/links/{link['id']}").status_code == 200
    changed = unmerge(root, account, guest).json()["data"]["changed"]
    assert [text.partition(":")[0] for text in changed] == ["assignments", "games", "keys"]
    kept, restored = permissions(root, [account, guest], [game])
    assert kept == []  # the role went back, and the changed data stays
    assert sorted(restored) == ["private_data.a", "public_data.level"]


def test_ban_of_a_merged_user_is_a_ban_of_the_account(root: Administrator, studio: Studio) -> None:
    """Also of one who was merged by way of another."""
    device = Device()
    guest, middle = device.sign_in(studio.client)["user_id"], Device().sign_in(studio.client)["user_id"]
    account = studio.user().user_id
    merge(root, guest, middle)
    merge(root, middle, account)
    banned = root.request("POST", f"/users/{guest}/bans", json={"scope": "all"})
    assert (banned.status_code, banned.json()["data"]["user_id"]) == (201, account), banned.text
    assert device.call(studio.client).status_code == 403
    (ban,) = root.data(f"/users/{guest}/bans")
    assert root.data(f"/users/{account}/bans") == [ban]
    assert root.request("DELETE", f"/users/{middle}/bans/{ban['id']}").status_code == 200
    assert device.sign_in(studio.client)["user_id"] == account


@pytest.mark.parametrize("named", ["guest", "account"])
def test_ban_of_a_merged_user_stays_with_its_key_when_the_merge_is_undone(
    server: Server, root: Administrator, studio: Studio, named: str
) -> None:
    device, application = Device(), new_application(server)
    users = {"guest": device.sign_in(studio.client)["user_id"], "account": studio.user().user_id}
    merge(root, users["guest"], users["account"])
    assert root.request("POST", f"/users/{users[named]}/bans", json={"scope": "all"}).status_code == 201
    body = {"scope": {"application_id": application}}
    assert root.request("POST", f"/users/{users[named]}/bans", json=body).status_code == 201
    assert unmerge(root, users["account"], users["guest"]).json()["data"] == {"changed": []}
    assert device.call(studio.client).status_code == 403
    scopes = [[ban["scope"] for ban in root.data(f"/users/{user_id}/bans")] for user_id in users.values()]
    assert sorted(map(str, scopes[0])) == sorted(map(str, scopes[1]))
    assert len(scopes[0]) == 2


def test_ban_of_an_account_is_a_ban_of_the_keys_that_a_merge_moves_to_it(
    server: Server, root: Administrator, studio: Studio
) -> None:
    device, account, application = Device(), studio.user().user_id, new_application(server)
    guest = device.sign_in(studio.client)["user_id"]
    body = {"scope": {"application_id": application}}
    assert root.request("POST", f"/users/{account}/bans", json=body).status_code == 201
    assert merge(root, guest, account).status_code == 200
    (link,) = root.data(f"/users/{account}/links")
    assert root.request("DELETE", f"/users/{account}/links/{link['id']}").status_code == 200
    assert device.call(studio.client, app_id=application).status_code == 403  # no new guest can start again there


def test_merges_that_are_refused(server: Server, root: Administrator, studio: Studio) -> None:
    (game,) = new_games(server, 1)
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    assert merge(root, guest, guest).status_code == 400
    assert merge(root, guest, "999999").status_code == 400
    assert merge(root, account, guest).status_code == 400  # an account into a guest
    other = administrator(studio, "can_view_users")
    assert merge(root, other.user_id, studio.root.user_id).status_code == 409  # both are administrators
    assert unmerge(root, account, guest).status_code == 409
    # A manager of users cannot give roles of games, neither directly nor by a merge.
    give(server, guest, game, roles=["a"])
    manager = administrator(studio, "can_manage_users")
    assert merge(manager, guest, manager.user_id).status_code == 403
    assert merge(manager, other.user_id, account).status_code == 403  # can_view_users would move
    assert root.data(f"/users/{guest}")["merged_into"] is None
    assert merge(root, guest, account).status_code == 200
    assert merge(root, guest, account).status_code == 409


def test_merged_user_cannot_be_deleted(root: Administrator, studio: Studio) -> None:
    """It is erased together with the account."""
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    merge(root, guest, account)
    for parameters in ({}, {"now": "1"}):
        refused = root.request("DELETE", f"/users/{guest}", params=parameters)
        assert (refused.status_code, f"was merged into {account}" in refused.text) == (409, True), refused.text
    assert root.data(f"/users/{guest}")["deletion_due"] is None
    unmerge(root, account, guest)
    assert root.request("DELETE", f"/users/{guest}").status_code == 200


def test_merge_of_a_user_who_is_going_to_be_erased_cannot_be_undone(
    server: Server, root: Administrator, studio: Studio
) -> None:
    """Otherwise the user would be erased as soon as it is disabled."""
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    merge(root, guest, account)
    close = "UPDATE users SET deletion_due = now() + interval '1 day', deletion_by = 'disabled' WHERE user_id = $1"
    query(server, close, guest)
    refused = unmerge(root, account, guest)
    assert (refused.status_code, f"the account {guest} is closed" in refused.text) == (409, True), refused.text
    assert root.request("POST", f"/users/{guest}/restore").status_code == 200
    assert unmerge(root, account, guest).status_code == 200
    restored = root.data(f"/users/{guest}")
    assert (restored["disabled"], restored["deletion_due"]) == (False, None)


def test_the_last_key_of_a_guest_stays(root: Administrator, studio: Studio) -> None:
    guest = Device().sign_in(studio.client)["user_id"]
    (link,) = root.data(f"/users/{guest}/links")
    assert root.request("DELETE", f"/users/{guest}/links/{link['id']}").status_code == 409
    assert root.request("DELETE", f"/users/{guest}/links/none").status_code == 404


def test_store_account_of_a_disabled_user_can_be_removed(server: Server, root: Administrator, studio: Studio) -> None:
    with opened(store := SteamStore()):
        provider_id, login = add_store(server, store), new_user(server)
        user_id = link_account(server, provider_id, "76561197960265731", login)
    query(server, "UPDATE users SET disabled = true WHERE user_id = $1", user_id)
    (link,) = root.data(f"/users/{user_id}/links")
    assert root.request("DELETE", f"/users/{user_id}/links/{link['id']}").status_code == 200
    assert root.data(f"/users/{user_id}/links") == []
    entries = query(server, "SELECT operation FROM audit WHERE target = $1", user_id)
    assert "user.unlink" in {entry["operation"] for entry in entries}


def test_removing_a_key_ends_the_sign_ins_of_this_key_alone(root: Administrator, studio: Studio) -> None:
    devices, account = (Device(), Device()), studio.user().user_id
    for device in devices:
        merge(root, device.sign_in(studio.client)["user_id"], account)
    tokens = [device.sign_in(studio.client)["token"] for device in devices]
    newest, _ = root.data(f"/users/{account}/links")  # the key that was used last
    assert root.request("DELETE", f"/users/{account}/links/{newest['id']}").status_code == 200
    answers = [studio.client.post("/proxy/api/login", json={"token": token}).status_code for token in tokens]
    assert sorted(answers) == [200, 401]
    for device, answer in zip(devices, answers, strict=True):  # the key without a user makes a new guest
        assert (device.sign_in(studio.client)["user_id"] == account) == (answer == 200)


def test_commands_merge_and_undo(server: Server, studio: Studio) -> None:
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user().user_id
    assert "keys:" in server.sso("user", "merge", guest, account, "--dry-run").stdout
    assert "is merged" in server.sso("user", "merge", guest, account, "--yes").stdout
    (line,) = server.sso("user", "links", account).stdout.splitlines()
    assert " key " in line
    assert "of its own" in server.sso("user", "unmerge", account, guest).stdout


async def new_guest(services: Services, key: bytes) -> str:
    await services.players.guests.store.create_guest(key, "EdDSA", "127.0.0.1", ())
    guest: str = await services.database.value(
        Statement("SELECT user_id FROM device_keys WHERE digest = :key"), key=key
    )
    return guest


async def account_with_key(services: Services, key: bytes) -> User:
    guest, account = await new_guest(services, key), await add_user(services)
    await services.players.merges.merge(actor_mode(AuditActor()), guest, account.user_id)
    return account


async def sign_in_with_key(services: Services, user: User, key: bytes) -> None:
    statement = """INSERT INTO sign_ins (id, user_id, device_key, last_used, expires)
        VALUES ('sign-in', :user_id, :key, now(), now() + interval '1 day')"""
    await services.database.value(Statement(statement), user_id=user.user_id, key=key)


async def test_previews_and_merges_leave_connections_to_logins(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wait for a connection of the share for merges, and are refused for the moment if none becomes free."""
    merges, database = services.players.merges, services.database
    guest, account = await new_guest(services, b"p" * 32), await add_user(services)
    monkeypatch.setattr(database.shares, "merges", ConnectionShare(1, max_wait_s=0.01))
    async with database.shares.merges.turn(("another",)):
        with pytest.raises(Unavailable):
            await preview_merge(merges, guest, account)
        with pytest.raises(Unavailable):
            await merges.merge(actor_mode(AuditActor()), guest, account.user_id, of_guest=True)
    assert await preview_merge(merges, guest, account) is not None
    await merges.merge(actor_mode(AuditActor()), guest, account.user_id, of_guest=True)
    assert await merges.merged_into(guest) == account.user_id


async def test_previews_and_merges_do_not_wait_for_a_document(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges, database = services.players.merges, services.database
    guest, account = await new_guest(services, b"d" * 32), await add_user(services)
    monkeypatch.setattr(database.shares, "evaluation", ConnectionShare(1, max_wait_s=0.01))
    async with database.shares.evaluation.turn(("document",)):
        assert await preview_merge(merges, guest, account) is not None
        await merges.merge(actor_mode(AuditActor()), guest, account.user_id, of_guest=True)


async def test_player_who_opens_a_preview_often_delays_no_other_player(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges, database = services.players.merges, services.database
    guest, account = await new_guest(services, b"o" * 32), await add_user(services)
    other_guest, other_account = await new_guest(services, b"q" * 32), await add_user(services)
    monkeypatch.setattr(database.shares, "merges", ConnectionShare(1))
    done = []

    async def preview(user_id: str, into: User) -> None:
        assert await preview_merge(merges, user_id, into) is not None
        done.append(user_id)

    async with trio.open_nursery() as nursery, database.shares.merges.turn(("another",)):
        for _ in range(10):
            nursery.start_soon(preview, guest, account)
        await until_true(lambda: len(database.shares.merges) == 10)
        nursery.start_soon(preview, other_guest, other_account)
        await until_true(lambda: len(database.shares.merges) == 11)
    assert done.index(other_guest) < 5


async def test_removal_of_a_key_ends_what_was_issued_to_the_device_and_is_audited(services: Services) -> None:
    database, account = services.database, await account_with_key(services, b"r" * 32)
    (link,) = await services.players.links.keys(account.user_id)
    await sign_in_with_key(services, account, b"r" * 32)
    assert await services.players.links.remove(account, link.id, AuditActor(operator="ann"))
    assert await services.players.links.keys(account.user_id) == []
    assert await database.value(Statement("SELECT bool_and(ended) FROM sign_ins"))
    entries = await database.rows(Statement("SELECT target, operator FROM audit WHERE operation = 'user.unlink'"))
    assert [tuple(entry) for entry in entries] == [(account.user_id, "ann")]


async def sign_in_while_it_changes(services: Services, key: bytes, change: Awaitable[Any], changing: trio.Event) -> Any:
    """Signs in with the key when the event is set. The transaction of the change then waits until this blocks."""
    guests, address = services.players.guests, parse_address("127.0.0.1")
    tokens = guests.tokens.prepare(by_device_key(), LoginOptions(address), device_key=key)
    results: list[Any] = []

    async def sign_in() -> None:
        await changing.wait()
        results.append(await guests.store.sign_in(key, tokens.columns))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sign_in)
        await change
    return results[0]


async def test_sign_in_that_waits_for_the_removal_of_its_key_gets_nothing(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, account = services.database, await account_with_key(services, b"t" * 32)
    (link,) = await services.players.links.keys(account.user_id)
    removing = trio.Event()

    async def delete_key_and_wait(tx: Transaction, user_id: str, key_id: str) -> bytes | None:
        key = await delete_key(tx, user_id, key_id)
        removing.set()
        await until_blocking(tx)
        return key

    monkeypatch.setattr(links, "delete_key", delete_key_and_wait)
    removal = services.players.links.remove(account, link.id)
    assert await sign_in_while_it_changes(services, b"t" * 32, removal, removing) is None
    assert await database.value(Statement("SELECT count(*) FROM sign_ins")) == 0
    assert await database.value(Statement("SELECT count(*) FROM session_tokens")) == 0


async def test_sign_in_that_waits_while_its_key_goes_back_gets_nothing(services: Services) -> None:
    """It had found the account, to which the key does not belong any more."""
    database, merges = services.database, services.players.merges
    guest, account = await new_guest(services, b"u" * 32), await add_user(services)
    await merges.merge(actor_mode(AuditActor()), guest, account.user_id)
    undoing = trio.Event()

    async def wait(tx: Transaction, _moves: Moves) -> None:
        undoing.set()
        await until_blocking(tx)

    undo = merges.unmerge(actor_mode(AuditActor()), account.user_id, guest, wait)
    assert await sign_in_while_it_changes(services, b"u" * 32, undo, undoing) is None
    assert await database.value(Statement("SELECT count(*) FROM sign_ins")) == 0
    assert await database.value(Statement("SELECT count(*) FROM session_tokens")) == 0


async def test_guests_that_are_not_seen_and_finished_merges_leave_nothing(services: Services) -> None:
    players = services.players
    await players.guests.store.create_guest(b"k" * 32, "EdDSA", "127.0.0.1", ())
    assert await players.expiry.erase_unseen() == 0
    await services.database.value(Statement("UPDATE device_keys SET last_used = now() - interval '91 days'"))
    assert await players.expiry.erase_unseen() == 1
    assert await services.database.value(Statement("SELECT count(*) FROM users WHERE login = ''")) == 0


async def test_guest_whom_another_worker_has_erased_is_passed_over(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both workers have read the same list."""
    expiry, database = services.players.expiry, services.database
    guests = [await new_guest(services, key * 32) for key in (b"v", b"w")]
    await database.value(Statement("UPDATE device_keys SET last_used = now() - interval '91 days'"))

    async def list_of_before(*_: Any) -> tuple[list[str], KeyPosition]:
        return ["erased", *guests], BEFORE_ALL_KEYS

    monkeypatch.setattr(guest_expiry, "unseen_guests", list_of_before)
    assert await expiry.erase_unseen() == 2
    assert await expiry.erase_unseen() == 0


async def test_failure_of_one_guest_does_not_keep_the_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiry, database = services.players.expiry, services.database
    first, _ = [await new_guest(services, key * 32) for key in (b"x", b"y")]
    await database.value(Statement("UPDATE device_keys SET last_used = now() - interval '91 days'"))

    async def fail_for_the_first(deletion: Any, erasure: Any, user: User, *args: Any) -> bool:
        if user.user_id == first:
            raise ValueError
        return await erase_at_once(deletion, erasure, user, *args)

    monkeypatch.setattr(guest_expiry, "erase_at_once", fail_for_the_first)
    assert await expiry.erase_unseen() == 1
    left = await database.rows(Statement("SELECT user_id FROM device_keys"))
    assert [row["user_id"] for row in left] == [first]


async def test_guest_with_a_store_account_is_kept_although_the_device_is_not_seen(services: Services) -> None:
    database, expiry = services.database, services.players.expiry
    guest = await new_guest(services, b"s" * 32)
    await database.value(Statement("UPDATE device_keys SET last_used = now() - interval '91 days'"))
    await database.value(
        Statement("INSERT INTO identity_providers (provider_id, kind, name, client_id) VALUES ('s', 'steam', 'S', '')")
    )
    await database.value(
        Statement(
            """INSERT INTO linked_identities (id, provider_id, subject, user_id, last_used)
            VALUES ('l', 's', '1', :guest, now() - interval '91 days')"""
        ),
        guest=guest,
    )
    assert await expiry.erase_unseen() == 0
    await database.value(Statement("DELETE FROM linked_identities"))
    assert await expiry.erase_unseen() == 1


async def test_guests_who_are_kept_are_not_read_each_time(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have signed in since their key was used. Their keys are the oldest ones."""
    monkeypatch.setattr(device_key_store, "MAX_OLD_KEYS", 2)
    database, expiry = services.database, services.players.expiry
    guests = [await new_guest(services, number.to_bytes() * 32) for number in range(6)]
    for number, guest in enumerate(guests):
        sql = "UPDATE device_keys SET last_used = current_date - CAST(:days AS int) WHERE user_id = :guest"
        await database.value(Statement(sql), days=100 - number // 3, guest=guest)  # three have the same time
    sql = """INSERT INTO sign_ins (id, user_id, last_used, expires)
        SELECT user_id, user_id, now(), now() FROM unnest(CAST(:guests AS text[])) AS user_id"""
    await database.value(Statement(sql), guests=guests[:4])
    assert [await expiry.erase_unseen() for _ in range(3)] == [0, 0, 2]
    await database.value(Statement("DELETE FROM sign_ins"))
    assert [await expiry.erase_unseen() for _ in range(3)] == [0, 2, 2]  # after the last key comes the first one


async def test_guest_who_comes_back_before_the_erasure_is_kept(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest signs in after the list of guests who were not seen was read."""
    players, database = services.players, services.database
    await players.guests.store.create_guest(b"b" * 32, "EdDSA", "127.0.0.1", ())
    seen = "UPDATE device_keys SET last_used = now() - make_interval(days => :days)"
    await database.value(Statement(seen), days=91)

    async def list_and_sign_in(
        runner: Runner, days: int, limit: int, after: KeyPosition
    ) -> tuple[list[str], KeyPosition]:
        guests = await unseen_guests(runner, days, limit, after)
        await database.value(Statement(seen), days=0)
        return guests

    monkeypatch.setattr(guest_expiry, "unseen_guests", list_and_sign_in)
    assert await players.expiry.erase_unseen() == 0
    guests = await database.rows(Statement("SELECT disabled, deletion_due FROM users WHERE login = ''"))
    assert [tuple(guest) for guest in guests] == [(False, None)]


def test_console_previews_merges_and_undoes(server: Server, root: Administrator, studio: Studio) -> None:
    (game,) = new_games(server, 1)
    guest, account = Device().sign_in(studio.client)["user_id"], studio.user()
    give(server, guest, game, roles=["a"], public_data={"level": {"value": True}})
    path, other = f"/console/users/{guest}/merge", f"/console/users/{account.user_id}/merge"
    with ConsoleBrowser(server, studio.root) as browser:
        browser.open(path)
        for into, problem in (("nobody@example.com", "There is no user"), (guest, "This is the same user")):
            assert problem in browser.get(path, params={"into": into}).text
        page = browser.open(path, params={"into": account.login})
        assert all(text in page for text in ("Keys of devices: 1", "<code>a</code> at", "gains", ">a<", "Merge users"))
        assert root.data(f"/users/{guest}")["merged_into"] is None  # a preview changes nothing
        assert browser.act(path) == "The users have been merged. For 7 days you can undo it here."
        assert root.data(f"/users/{guest}")["merged_into"] == account.user_id
        assert [merge["from"] for merge in root.data(f"/users/{account.user_id}/merges")] == [guest]
        assert "was merged into" in browser.open(path)
        give(server, account.user_id, game, public_data={"level": {"value": False}})
        browser.open(other)
        undone = browser.submit(f"/console/users/{account.user_id}/unmerge")
        assert f"games: {game} was changed" in undone.text
        assert root.data(f"/users/{account.user_id}/merges") == []
        browser.open(path, params={"into": account.login})
        browser.act(path)
        assert browser.act(f"/console/users/{account.user_id}/unmerge").startswith("The merge has been undone")
