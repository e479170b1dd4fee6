"""The accounts of test players stay apart from others: none is taken over, merged, renamed or given rights."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from sso.accounts.bans.operations import BanOperations, NewBan
from sso.accounts.model import User
from sso.accounts.test_players import outcomes
from sso.accounts.test_players.hooks import ExpiringMailedLinks
from sso.accounts.user_record import UserChanges
from sso.accounts.user_store import lock_user
from sso.audit.trail import AuditActor
from sso.core.errors import ApiError, Conflict, Forbidden
from sso.core.field_errors import FieldError
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.changes.last_administrators import LastAdministrator
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import WRITE
from sso.services import Services
from tests.kit.builders import add_user
from tests.state.studio import ANN, apply, studio

PASSWORD = "known to developers"
BANS = BanOperations(())
ID, LOGIN = outcomes.SUCCESS.user_id, outcomes.SUCCESS.login
_EVENTS = "SELECT count(*) FROM change_events WHERE type = 'permissions_changed' AND user_id = :user_id"


async def run(services: Services, sql: str, **values: Any) -> None:
    await services.database.rows(Statement(sql, name="tests.run"), **values)


async def execute(tx: Transaction, statement: Statement, user_id: str) -> None:
    await tx.rows(statement, user_id=user_id)


async def create(services: Services) -> list[str]:
    """Creates the players and returns the reasons of those that could not be created."""
    with capture_logs() as logs:
        await services.test_players.create(PASSWORD)
    return [f"{entry['login']}: {entry['reason']}" for entry in logs if entry["event"] == "test_players.failed"]


async def stored(services: Services, user_id: str = ID) -> User:
    user = await services.users.get(user_id)
    assert user is not None
    return user


async def change(services: Services, user_id: str, **changes: Any) -> None:
    async def work(tx: Transaction) -> None:
        user = await lock_user(tx, user_id)
        assert user is not None
        await services.operations.users.change(tx, AuditActor(), user, UserChanges(**changes), None)

    await services.database.transaction(work)


async def insert_ordinary(services: Services, user_id: str, login: str) -> User:
    """An account from before there were test players: since then, the id is refused."""
    user = await add_user(services, login=login, tags=["vip"], email_2fa=True)
    await run(services, "UPDATE users SET user_id = :new WHERE user_id = :old", new=user_id, old=user.user_id)
    return await stored(services, user_id)


async def test_account_with_the_login_of_a_test_player_is_left_alone(services: Services) -> None:
    owner = await add_user(services, login=LOGIN)
    assert await create(services) == [f"{LOGIN}: login: belongs to another user_id"]
    await services.test_players.disable()
    assert await stored(services, owner.user_id) == owner


async def test_account_with_the_id_of_a_test_player_is_left_alone(services: Services) -> None:
    owner = await insert_ordinary(services, ID, "ann@example.com")
    await apply(services, {"permissions": [{"user_id": ID, "application_id": 1, "data": {"roles": ["root"]}}]})
    for _ in range(2):
        assert await create(services) == [f"{LOGIN}: the user_id {ID} belongs to an ordinary account"]
        await services.test_players.disable()
        assert await stored(services) == owner
    disabling = Statement("UPDATE users SET disabled = true WHERE user_id = :user_id", name="tests.disabling")
    with pytest.raises(LastAdministrator):  # it has the rights that it was given
        await services.permissions.writer.write(WRITE, Scope.account(ID), execute, disabling, ID)
    with pytest.raises(FieldError, match="login: is that of a test player"):
        await change(services, ID, login=LOGIN)


async def test_ids_of_test_players_are_reserved(services: Services) -> None:
    with pytest.raises(ApiError, match=f"user_id: is reserved for the test player {LOGIN}"):
        await add_user(services, user_id=ID, login="ann@example.com")
    assert await services.users.get(ID) is None


async def test_login_of_a_test_player_cannot_be_changed(services: Services) -> None:
    """An account with another login would not be recognised, and would keep the password without the setting."""
    await create(services)
    with pytest.raises(FieldError, match="login: of a test player cannot be changed"):
        await change(services, ID, login="ann@example.com")
    with pytest.raises(Forbidden, match="the address of a test player cannot be changed"):
        await services.email_change.request(await stored(services), "ann@example.com", "en")
    await change(services, ID, login=LOGIN.upper(), nick="Ann")
    await services.test_players.disable()
    assert (await stored(services)).disabled


async def test_test_player_cannot_be_merged(services: Services) -> None:
    await create(services)
    ann = await add_user(services)
    for users in ((ID, ann.user_id), (ann.user_id, ID)):
        with pytest.raises(Conflict, match=f"{ID} is a test player, and test players cannot be merged"):
            await services.players.merges.merge(WRITE, *users)


async def test_merged_test_player_stays_disabled(services: Services) -> None:
    """Otherwise, the known password would give the rights of the account that it was merged into."""
    await create(services)
    await apply(services, studio())
    await run(services, "UPDATE users SET merged_into = :into, disabled = true WHERE user_id = :id", into=ANN, id=ID)
    assert await create(services) == [f"{LOGIN}: the user {ID} was merged into {ANN}"]
    assert (await stored(services)).disabled
    with pytest.raises(FieldError, match=f"disabled: the user was merged into {ANN}: undo the merge instead"):
        await change(services, ID, disabled=False)


async def test_test_player_is_not_the_last_administrator(services: Services) -> None:
    await create(services)
    await apply(services, studio())
    sql = "INSERT INTO role_assignments (user_id, application_id, name, position) VALUES (:id, 1, 'root', 1)"
    await run(services, sql, id=ID)
    sql = "INSERT INTO project_members (project_id, user_id, level, role) VALUES ('red_dawn', :id, 'project', 'admin')"
    await run(services, sql, id=ID)
    await run(services, "UPDATE projects SET settings = '{}', allow = '{}'")
    for scope, sql in (
        (Scope.record(ANN, 1), "DELETE FROM role_assignments WHERE user_id = :user_id AND application_id = 1"),
        (Scope.account(ANN), "UPDATE users SET disabled = true WHERE user_id = :user_id"),
        (Scope.project("red_dawn"), "DELETE FROM project_members WHERE user_id = :user_id"),
    ):
        statement = Statement(sql, name="tests.work")
        with pytest.raises(LastAdministrator):
            await services.permissions.writer.write(WRITE, scope, execute, statement, ANN)
    await services.test_players.disable()  # is not refused
    assert (await stored(services)).disabled


ADMINISTRATIVE: list[dict[str, Any]] = [
    {"permissions": [{"user_id": ID, "application_id": 1, "data": {"roles": ["root"]}}]},
    {"permissions": [{"user_id": ID, "application_id": 1, "data": {"private_data": {"x": {"value": True}}}}]},
    {
        "permissions": [
            {
                "user_id": ID,
                "application_id": 40,
                "data": {"secret_data": {"application": {"canRead": {"value": True}}}},
            }
        ]
    },
    {"memberships": [{"id": "red_dawn", "users": [{"user_id": ID, "roles": {"project": ["viewer"]}}]}]},
    {"projects": [{"title": "Blue Dawn", "admins": [ID]}]},
]


async def test_administrative_rights_are_refused(services: Services) -> None:
    await create(services)
    await apply(services, studio())
    for document in ADMINISTRATIVE:
        with pytest.raises(ApiError, match=f"{ID} is a test player, and test players can have no administrative"):
            await apply(services, document)


async def test_start_restores_the_whole_account(services: Services) -> None:
    """A developer may enter anything, link own accounts, and leave the studio."""
    await create(services)
    before = await stored(services)
    fields = {"nick": "Ann", "tags": ["vip"], "purchases": ["gold"], "country": "DE", "lang": "de", "level": "9"}
    await change(services, ID, **fields, phone="+49", phone_verified=True, meta={"a": 1}, email_verified=False)
    ban = NewBan("a mistake")
    await services.database.transaction(BANS.ban, AuditActor(), ID, ban)
    banned = outcomes.BANNED.user_id
    await run(services, "DELETE FROM user_bans WHERE user_id = :id", id=banned)
    await run(services, "UPDATE users SET bans = NULL WHERE user_id = :id", id=banned)
    await services.database.transaction(BANS.ban, AuditActor(), banned, ban)
    await run(services, "INSERT INTO device_keys (digest, id, user_id) VALUES ('\\x01', 'key', :id)", id=ID)
    await run(services, "INSERT INTO recovery_codes (user_id, digest) VALUES (:id, '\\x01')", id=ID)
    assert await create(services) == []
    after = await stored(services)
    names = ("nick", "tags", "purchases", "country", "lang", "level", "phone", "phone_verified", "meta", "bans")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]
    assert after.email_verified
    assert [item.reason for item in (await stored(services, banned)).bans] == ["Cheating in a ranked match"]
    left = "SELECT (SELECT count(*) FROM device_keys) + (SELECT count(*) FROM recovery_codes)"
    assert await services.database.value(Statement(left, name="tests.left")) == 0


async def test_restore_records_changes_of_permissions(services: Services) -> None:
    """The role of a tag ends with the tag, and games that follow the changes learn it."""
    await create(services)
    await apply(services, studio())
    role = {"name": "vip", "condition": {"tag": "vip"}, "meta": {"private_data": {"lounge": {"value": True}}}}
    await apply(services, {"roles": {"40": [role]}, "users": [{"user_id": ID, "login": LOGIN, "tags": ["vip"]}]})
    before = await services.database.value(Statement(_EVENTS, name="tests.events"), user_id=ID)
    await create(services)
    assert await services.database.value(Statement(_EVENTS, name="tests.events"), user_id=ID) == before + 1


async def test_without_the_setting_no_test_player_has_a_password(services: Services) -> None:
    """An administrator who enables one by hand does not open it to everybody who knows the password."""
    await create(services)
    bob = await add_user(services)
    await services.test_players.disable()
    players = [await stored(services, player.user_id) for player in outcomes.OUTCOMES]
    assert [(user.disabled, user.password_hash) for user in players] == [(True, None)] * len(players)
    assert await stored(services, bob.user_id) == bob
    assert await create(services) == []
    assert not (await stored(services)).disabled


@pytest.mark.parametrize("disabled", [False, True])
async def test_without_the_setting_no_test_player_has_a_passkey_or_a_recovery_code(
    services: Services, disabled: bool
) -> None:
    """Also one that an earlier version has disabled."""
    await create(services)
    sql = """INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count)
        VALUES ('passkey', :id, '\x01', '\x02', 0)"""
    await run(services, sql, id=ID)
    await run(services, "UPDATE users SET passkey_count = 1 WHERE user_id = :id", id=ID)
    await run(services, "INSERT INTO recovery_codes (user_id, digest) VALUES (:id, '\x01')", id=ID)
    if disabled:
        await run(services, "UPDATE users SET disabled = true, password_hash = NULL WHERE user_id = :id", id=ID)
    await services.test_players.disable()
    left = "SELECT (SELECT count(*) FROM passkeys) + (SELECT count(*) FROM recovery_codes)"
    assert await services.database.value(Statement(left, name="tests.left")) == 0
    assert not (await stored(services)).second_factors


async def test_mails_to_an_ordinary_account_with_the_id_of_a_test_player_do_not_expire(services: Services) -> None:
    links = ExpiringMailedLinks(services.database, "http://localhost")

    async def lives(user_id: str) -> bool:
        url = await links.create(services.database, "password_reset", "/password/reset", 60, user_id)
        return await links.find("password_reset", url.rpartition("=")[2].rpartition("/")[2]) is not None

    await insert_ordinary(services, outcomes.EXPIRED.user_id, "ann@example.com")
    assert await lives(outcomes.EXPIRED.user_id)
    await run(services, "DELETE FROM users")
    await create(services)
    assert not await lives(outcomes.EXPIRED.user_id)
    assert await lives(ID)
