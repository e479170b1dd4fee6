"""Which applications a user has used, and requests to games that do not answer, or that must not be called."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sso.accounts.user_store import create_user
from sso.audit.trail import AuditActor
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.cleanup import delete_expired
from sso.db.clock_sync import measure_clock
from sso.db.database import Database
from sso.db.known_users import delete_grants
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.device.session_store import _REVOKE_TOKENS as REVOKE_TOKENS
from sso.oauth.authorization.connected_site_store import ConnectedSites
from sso.oauth.clients.store import delete_client
from sso.personal_data.games import wiring
from sso.personal_data.games.exports import GameExport
from sso.personal_data.games.model import Sources, UsedApplication
from sso.personal_data.games.request_store import RequestFilter, add_removals, list_requests
from sso.personal_data.games.sender import LIMITS
from sso.personal_data.games.used_application_store import used_applications
from sso.players.merge import actor_mode
from sso.services import Services, build
from tests.kit.conditions import until_blocking
from tests.kit.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.oauth.in_process import CREDENTIALS, apply_client, new_code, redeem

ADD_APPLICATION = Statement(
    "INSERT INTO applications (application_id, name, settings) VALUES (:application_id, 'Tanks', :settings)"
)
OLD_SIGN_IN = Statement(
    """INSERT INTO account_events (user_id, kind, at, detail)
    SELECT :user_id, kind, now() - interval '1 year', jsonb_build_object('app_id', app_id, 'gapp_id', 0)
    FROM (VALUES ('signed_in', CAST(:application_id AS int)), ('banned', 51)) event (kind, app_id)"""
)
MERGE = Statement("UPDATE users SET merged_into = :into WHERE user_id = :user_id")
DELETE_ALL_GRANTS = Statement(delete_grants(""))
EVENTS = Statement("SELECT count(*) FROM account_events")


@pytest.fixture
def game() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as game:
        yield game


async def new_user(services: Services, name: str) -> str:
    user = await create_user(services.database, f"{name}@example.com", None, name, "en", email_verified=True)
    assert user is not None
    return user.user_id


async def add_application(services: Services, application_id: int, **source: str) -> None:
    settings: dict[str, Any] = {"gdpr": {"data_sources": [source]}}
    await services.database.value(ADD_APPLICATION, application_id=application_id, settings=settings)


async def test_used_applications_outlive_the_history_and_include_those_of_merged_users(services: Services) -> None:
    database, url = services.database, "https://game.example.com/"
    for application_id in (50, 51, 52):
        await add_application(services, application_id, fetch=url)
    ann, guest, other, first = [await new_user(services, name) for name in ("ann", "guest", "other", "first")]
    for user_id, application_id in ((ann, 50), (guest, 52), (other, 51), (first, 52)):
        await database.value(OLD_SIGN_IN, user_id=user_id, application_id=application_id)
    for user_id, into in ((guest, ann), (first, guest)):  # the last one by way of the guest
        await database.value(MERGE, user_id=user_id, into=into)
    expected = [(ann, 50), (guest, 52), (first, 52)]
    for _ in range(2):
        used = await used_applications(database, ann)
        assert [(one.subject_id, one.application_id) for one in used] == expected
        await delete_expired(database, history_days=90)
        assert await database.value(EVENTS) == 0


async def let_expire(services: Services) -> None:
    await services.database.run_sql("UPDATE oauth_grants SET expires = now() - interval '1 minute'", [])
    await delete_expired(services.database)


async def revoke(services: Services) -> None:
    (grant,) = await services.database.run_sql("SELECT id FROM oauth_grants", [])
    assert await services.oauth.token_store.revoke_grant(grant["id"], "shop")


async def remove_site(services: Services) -> None:
    (user,) = await services.database.run_sql("SELECT user_id FROM users", [])
    await ConnectedSites(services.database).remove(user["user_id"], "shop")


async def revoke_device(services: Services) -> None:
    (grant,) = await services.database.run_sql("SELECT id FROM oauth_grants", [])
    await services.database.value(REVOKE_TOKENS, claim_id=grant["id"])


async def delete_site(services: Services) -> None:
    await services.database.transaction(delete_client, "shop")


async def move_site(services: Services) -> None:
    await apply_client(services, application_id=51)


async def disable_site(services: Services) -> None:
    await apply_client(services, disabled=True)


ENDS = [let_expire, revoke, remove_site, revoke_device, delete_site, move_site, disable_site]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_use_of_a_site_is_remembered_when_its_grant_ends(
    services: Services, end: Callable[[Services], Awaitable[None]]
) -> None:
    await add_application(services, 50, remove="https://game.example.com/")
    await redeem(services, CREDENTIALS, await new_code(services, None, {"scope": "openid"}, application_id=50))
    (user,) = await services.database.run_sql("SELECT user_id FROM users", [])
    await end(services)
    await services.database.run_sql("DELETE FROM oauth_grants", [])
    used = await used_applications(services.database, user["user_id"])
    assert [one.application_id for one in used] == [50]


@pytest.mark.parametrize("registered_itself", [False, True])
async def test_consent_is_remembered_when_the_site_is_deleted(services: Services, *, registered_itself: bool) -> None:
    await add_application(services, 50, remove="https://game.example.com/")
    await apply_client(services, application_id=50)
    ann = await new_user(services, "ann")
    run = services.database.run_sql
    await run("INSERT INTO oauth_consents (user_id, client_id) VALUES ($1, 'shop')", [ann])
    if registered_itself:
        await run("UPDATE oauth_clients SET registered_by = 'open', registration_used = now() - interval '1 year'", [])
        await delete_expired(services.database, client_days=90)
    else:
        await delete_site(services)
    assert await run("SELECT FROM oauth_clients", []) == []
    assert [one.application_id for one in await used_applications(services.database, ann)] == [50]


async def test_erasure_waits_for_the_cleanup_and_deletes_what_it_remembers(services: Services) -> None:
    await redeem(services, CREDENTIALS, await new_code(services, application_id=50))
    run = services.database.run_sql
    (user,) = await run("SELECT user_id FROM users", [])
    cleaned = trio.Event()

    async def clean(tx: Transaction) -> None:
        assert await tx.rows(DELETE_ALL_GRANTS)
        cleaned.set()
        await until_blocking(tx)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.database.transaction, clean)
        await cleaned.wait()
        await run("UPDATE users SET disabled = true, deletion_due = now() WHERE user_id = $1", [user["user_id"]])
        assert await services.erasure.erase_due() == 1
    assert await run("SELECT FROM used_applications", []) == []


async def test_undo_of_a_merge_takes_the_answers_about_the_other_users_from_the_export(services: Services) -> None:
    """A game may answer later, and has no effect."""
    await add_application(services, 50, fetch="https://game.example.com/")
    merges, mode = services.players.merges, actor_mode(AuditActor())
    ann, other, first = [await new_user(services, name) for name in ("ann", "other", "first")]
    for user_id in (ann, other, first):
        await services.database.value(OLD_SIGN_IN, user_id=user_id, application_id=50)
    await merges.merge(mode, first, other)
    await services.game_data.exports.start(other)
    await merges.merge(mode, other, ann)
    await services.game_data.exports.start(ann)
    await services.database.transaction(
        lambda tx: add_removals(tx, [UsedApplication(other, 50, "", Sources((), (), ("https://game.example.com/",)))])
    )
    exported = (await services.game_data.exports.read(ann)).requests
    assert {request.subject_id for request in exported} == {ann, other, first}
    await merges.unmerge(mode, ann, other)
    assert [request.subject_id for request in (await services.game_data.exports.read(ann)).requests] == [ann]
    exported = (await services.game_data.exports.read(other)).requests
    assert {request.subject_id for request in exported} == {other, first}
    removals = await list_requests(services.database, RequestFilter(kind="remove"), 2**63 - 1, 10)
    assert [request.subject_id for request in removals] == [other]


@asynccontextmanager
async def sending(services: Services) -> AsyncIterator[None]:
    await measure_clock(services.database)
    async with trio.open_nursery() as nursery:
        await nursery.start(services.bus.run)
        await nursery.start(services.game_data.sender.run, services.bus)
        yield
        nursery.cancel_scope.cancel()


async def until_tried(services: Services, user_id: str) -> GameExport:
    with trio.fail_after(60):
        while True:
            export = await services.game_data.exports.read(user_id)
            if export.requests and export.requests[0].problem:
                return export
            await trio.sleep(0.02)


async def test_game_that_does_not_answer_is_asked_again(
    settings: Settings, database: Database, keyring: Keyring, game: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "LIMITS", replace(LIMITS, timeout_s=0.5))
    services = build(settings, database, keyring)
    game.hanging = threading.Event()
    await add_application(services, 50, fetch=game.url)
    ann = await new_user(services, "ann")
    await database.value(OLD_SIGN_IN, user_id=ann, application_id=50)
    assert await services.game_data.exports.start(ann)
    async with sending(services):
        (request,) = (await until_tried(services, ann)).requests
    assert (request.state, request.problem) == ("pending", "no answer within 0.5 seconds")


async def test_private_address_is_not_called_although_it_was_stored(
    database: Database, keyring: Keyring, game: WebhookReceiver, tmp_path: Path
) -> None:
    services = build(Settings(data_dir=tmp_path, base_url="https://sso.example.com"), database, keyring)
    await add_application(services, 50, fetch=f"https://localhost:{game.port}/")
    ann = await new_user(services, "ann")
    await database.value(OLD_SIGN_IN, user_id=ann, application_id=50)
    assert await services.game_data.exports.start(ann)
    async with sending(services):
        (request,) = (await until_tried(services, ann)).requests
    assert (request.state, request.problem) == ("failed", "the address of the host is not allowed")
    assert game.deliveries == []
