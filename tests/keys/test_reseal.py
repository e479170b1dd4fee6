"""Changing the master key: all sealed values are sealed with the new key.

More than 300 lines, because the tests share the values of all sealed columns.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from sso.accounts.second_factor.codes import totp_purpose
from sso.accounts.second_factor.store import use_totp_step
from sso.audit.deleted_secret_store import keep_secrets
from sso.audit.trail import AuditActor
from sso.core.encryption import EncryptionError, Keyring, MasterKey, column_purpose, key_id_of
from sso.core.language import Text
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.tables import metadata, sealed_columns
from sso.keys import reseal as reseal_module
from sso.keys import sealed_value_store
from sso.keys.reseal import OlderTransactionOpen, Reseal, ResealIncomplete
from sso.keys.sealed_value_store import SealedValue
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox
from sso.oauth.clients.store import secret_purpose
from sso.perm.stores.access_keys import add_access_key
from sso.perm.stores.email_secret import get_or_create_email_secret
from sso.personal_data.games.queue_store import data_secret
from sso.services import Services, build
from sso.ssf.model import NewSettings
from sso.ssf.stream_store import add_stream
from sso.state.apply import Applier
from sso.state.document import parse
from sso.upstream.identity_store import PendingIdentity
from sso.upstream.model import UpstreamIdentity
from sso.webhooks.webhook_store import add_webhook
from tests.kit.builders import TOTP_SECRET, add_user
from tests.kit.operator_changes import rotate_secret
from tests.kit.row_locks import changed_by_another_transaction, locked_by_another_transaction

CLIENT_SECRET = "a-secret-of-the-shop"


async def fill_users(services: Services) -> None:
    await add_user(services, user_id="7", totp_secret=TOTP_SECRET)
    await add_user(services, user_id="8")  # a user without a sealed value


async def fill_outbox(services: Services) -> None:
    content = MailContent(Text("subject"), (Text("The code is:"),), code="123456")
    outbox = Outbox(services.keyring, services.brand)
    await services.database.transaction(outbox.put, "ann@example.com", content, "en")


async def fill_recovery_codes(services: Services) -> None:
    assert await services.database.transaction(services.recovery_codes.replace, "7")


async def nothing_more(services: Services) -> None:
    """The column was filled together with another one."""


async def fill_signing_keys(services: Services) -> None:
    await services.key_rotation.ensure_signing_keys("ES256")


async def fill_clients(services: Services) -> None:
    secret = {"client_secret": CLIENT_SECRET}
    clients = [{"client_id": "shop", **secret}, {"client_id": "rotated", **secret}, {"client_id": "public"}]
    await Applier(services.database, services.hasher, services.operations).apply(parse({"clients": clients}))


async def rotate_client(services: Services) -> None:
    await rotate_secret(services, "rotated")


async def fill_application(services: Services) -> None:
    private = {"application_id": 10, "name": "Tanks", "service_meta": {"private_key": "a private key"}}
    await Applier(services.database, services.hasher, services.operations).apply(parse({"applications": [private]}))


async def fill_email_secret(services: Services) -> None:
    assert await services.database.transaction(get_or_create_email_secret, AuditActor(), services.keyring, 10)


async def fill_data_secret(services: Services) -> None:
    assert await data_secret(services.database, services.keyring, 10)


async def fill_access_keys(services: Services) -> None:
    await services.database.transaction(add_access_key, AuditActor(), services.keyring, 10, None, "ci", "")


async def fill_identity_providers(services: Services) -> None:
    google: dict[str, Any] = {"id": "google", "kind": "oidc", "issuer": "https://google.example", "client_id": "sso"}
    google |= {"client_secret": "a secret of the provider", "keep_tokens": True}
    await Applier(services.database, services.hasher, services.operations).apply(
        parse({"identity_providers": [google]})
    )


async def fill_linked_identities(services: Services) -> None:
    user, provider = await services.users.get("8"), await services.upstream.providers.get("google")
    assert user
    assert provider
    assert await services.upstream.links.link(user, provider, UpstreamIdentity("1", tokens={"access_token": "t"}))


async def fill_pending_identities(services: Services) -> None:
    await services.upstream.pending.put("a cookie", PendingIdentity("google", UpstreamIdentity("2"), ""))


async def fill_webhooks(services: Services) -> None:
    url, secret = "https://tools.example", "a secret of the webhook"
    await services.database.transaction(add_webhook, services.keyring, url, secret, (), disabled=False)


async def fill_deleted_secrets(services: Services) -> None:
    await services.database.transaction(keep_secrets, services.keyring, 1, {"client_secret": CLIENT_SECRET})


async def fill_signal_streams(services: Services) -> None:
    settings = NewSettings("push", "https://receiver.example", "Bearer a secret of the receiver", (), "")
    assert await services.database.transaction(add_stream, services.keyring, "shop", settings)


# A new sealed column needs an entry here, so that the tests cover it.
FILL: dict[str, Callable[[Services], Awaitable[None]]] = {
    "users.totp_sealed": fill_users,
    "recovery_code_sets.key_sealed": fill_recovery_codes,
    "outbox.body_sealed": fill_outbox,
    "outbox.html_sealed": nothing_more,
    "signing_keys.private_sealed": fill_signing_keys,
    "oauth_clients.secret_sealed": fill_clients,
    "oauth_clients.second_sealed": rotate_client,
    "applications.private_key_sealed": fill_application,
    "applications.email_secret_sealed": fill_email_secret,
    "applications.data_secret_sealed": fill_data_secret,
    "access_keys.hash_sealed": fill_access_keys,
    "identity_providers.secret_sealed": fill_identity_providers,
    "linked_identities.tokens_sealed": fill_linked_identities,
    "pending_identities.identity_sealed": fill_pending_identities,
    "webhooks.secret_sealed": fill_webhooks,
    "deleted_secrets.secrets_sealed": fill_deleted_secrets,
    "signal_streams.authorization_sealed": fill_signal_streams,
}
VALUES = len(FILL) + 3  # fill_clients adds two secrets, and fill_linked_identities a mail


@pytest.fixture
async def filled(services: Services) -> Services:
    for fill in FILL.values():
        await fill(services)
    return services


_TABLES_WITH_ROWS = Statement(
    """SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST('public' AS regnamespace)
        AND pg_relation_size(oid) > 0"""
)


async def sealed_values(database: Database) -> dict[str, list[tuple[str, str]]]:
    """Returns location and value of everything in the database that looks like a sealed value, by column."""
    values_by_column: dict[str, list[tuple[str, str]]] = {}
    for (table,) in await database.rows(_TABLES_WITH_ROWS):
        if table == "alembic_version":
            continue
        if len(metadata.tables[table].primary_key.columns) > 1:
            continue  # no sealed values; another test checks that
        (key,) = metadata.tables[table].primary_key.columns
        rows = await database.rows(
            Statement(
                f"SELECT CAST(record.{key.name} AS text), field.key, field.value "
                f"FROM {table} record, jsonb_each_text(to_jsonb(record)) field "
                r"WHERE field.value ~ '^v1[.][0-9a-f]+[.][A-Za-z0-9_=-]+$'"
            )
        )
        for row_key, column, value in rows:
            name = f"{table}.{column}"
            values_by_column.setdefault(name, []).append((column_purpose(name, row_key), value))
    return values_by_column


def test_reseal_covers_all_sealed_columns() -> None:
    marked = {f"{table.name}.{column.name}" for table, column in sealed_columns()}
    named = {
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if "sealed" in column.name
    }
    assert marked == named, "a column of sealed values has info=SEALED, and a name that says so"
    assert marked == set(FILL), "and is filled here"
    for table, _ in sealed_columns():
        assert len(table.primary_key.columns) == 1, "its key is the place that a value is bound to"


async def test_resealed_values_open_with_the_new_key_only(filled: Services) -> None:
    database, old = filled.database, filled.keyring.keys[0]
    before = await sealed_values(database)
    assert set(before) == set(FILL), "what is sealed, and where, as the database has it"
    secrets = {spot: filled.keyring.decrypt(spot, sealed) for values in before.values() for spot, sealed in values}

    with pytest.raises(ResealIncomplete, match=f"{VALUES} values cannot be decrypted"):
        await Reseal(database, Keyring([MasterKey.generate()])).run()
    assert await sealed_values(database) == before, "values that cannot be decrypted are not changed"

    new = MasterKey.generate()
    assert await Reseal(database, Keyring([new, old])).run() == VALUES

    after = await sealed_values(database)
    assert {key_id_of(sealed) for values in after.values() for _, sealed in values} == {new.id}
    assert {
        spot: Keyring([new]).decrypt(spot, sealed) for values in after.values() for spot, sealed in values
    } == secrets
    for values in after.values():
        for spot, sealed in values:
            with pytest.raises(EncryptionError):
                Keyring([old]).decrypt(spot, sealed)
    assert secrets[totp_purpose("7")] == TOTP_SECRET
    assert secrets[secret_purpose("shop")] == CLIENT_SECRET


async def test_service_works_with_the_new_key_alone(filled: Services) -> None:
    new = MasterKey.generate()
    await Reseal(filled.database, Keyring([new, *filled.keyring.keys])).run()
    ring = Keyring([new])
    fresh = build(filled.settings, filled.database, ring)
    await fresh.keys.load()
    assert fresh.keys.signer().kid == filled.keys.signer().kid
    user = await fresh.users.get("7")
    assert user is not None
    again = await Applier(filled.database, fresh.hasher, fresh.operations).apply(
        parse({
            "users": [{"login": user.login, "totp_secret": TOTP_SECRET}],
            "clients": [{"client_id": "shop", "client_secret": CLIENT_SECRET}],
        })
    )  # fmt: skip
    assert again.unchanged == 2


async def test_damaged_value_is_named_and_all_others_are_resealed(filled: Services) -> None:
    old, new = filled.keyring.keys[0], MasterKey.generate()
    change = Statement("UPDATE oauth_clients SET secret_sealed = :value WHERE client_id = 'shop'")
    reseal = Reseal(filled.database, Keyring([new, old]))
    for damaged in ("v1.0.0", "nonsense", "", f"v1.{old.id}.AAAA", f"v2.{old.id}.AAAA"):
        await filled.database.value(change, value=damaged)
        for _ in range(2):
            with pytest.raises(
                ResealIncomplete, match=r"1 values cannot be decrypted, such as oauth_clients.secret_sealed:shop"
            ):
                await reseal.run()
            assert await reseal.count_outdated() == 1, damaged


HOLD = "SELECT 1 FROM users WHERE user_id = '9' FOR UPDATE"


async def test_locked_value_is_resealed_last_without_blocking(
    filled: Services, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_user(filled, user_id="9", totp_secret=TOTP_SECRET)
    monkeypatch.setattr(reseal_module, "RETRY_S", 0.01)
    reseal = Reseal(filled.database, Keyring([MasterKey.generate(), *filled.keyring.keys]))
    counted: list[int] = []
    others_done = trio.Event()

    def progress(done: int) -> None:
        counted.append(done)
        if done == VALUES:
            others_done.set()

    async with trio.open_nursery() as nursery:
        with locked_by_another_transaction(dsn, HOLD):
            nursery.start_soon(reseal.run, progress)
            with trio.fail_after(60):
                await others_done.wait()
            assert await reseal.count_outdated() == 1
            assert await use_totp_step(filled.database, "7", 1)  # a resealed row is unlocked at once
    assert counted == sorted(counted)
    assert counted[-1] == VALUES + 1
    assert await reseal.count_outdated() == 0


async def test_value_that_stays_locked_raises_after_the_others_are_resealed(
    filled: Services, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_user(filled, user_id="9", totp_secret=TOTP_SECRET)
    monkeypatch.setattr(reseal_module, "MAX_STALL_S", 0.0)
    reseal = Reseal(filled.database, Keyring([MasterKey.generate(), *filled.keyring.keys]))
    with (
        locked_by_another_transaction(dsn, HOLD),
        pytest.raises(ResealIncomplete, match="other transactions keep 1 values locked"),
    ):
        await reseal.run()
    assert await reseal.run() == 1


async def test_value_that_an_older_transaction_commits_later_is_resealed(filled: Services, dsn: str) -> None:
    """A document of `sso apply` is applied in one transaction, which may take minutes."""
    sealed = filled.keyring.encrypt(totp_purpose("8"), TOTP_SECRET)
    reseal = Reseal(filled.database, Keyring([MasterKey.generate(), *filled.keyring.keys]))
    is_waiting = trio.Event()
    results: list[int] = []

    async def run() -> None:
        results.append(await reseal.run(waiting=lambda _: is_waiting.set()))

    async with trio.open_nursery() as nursery:
        store = f"UPDATE users SET totp_sealed = '{sealed}' WHERE user_id = '8'"
        with changed_by_another_transaction(dsn, store), trio.fail_after(60):
            nursery.start_soon(run)
            await is_waiting.wait()
    assert results == [VALUES + 1]
    assert await reseal.count_outdated() == 0


async def test_older_transaction_that_stays_open_is_named(
    filled: Services, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reseal_module, "MAX_OPEN_S", 0.0)
    reseal = Reseal(filled.database, filled.keyring)
    with (
        locked_by_another_transaction(dsn, "SELECT 1"),
        pytest.raises(OlderTransactionOpen, match=r"keeps a transaction open, .*pg_terminate_backend\(\d+\)"),
    ):
        await reseal.wait_for_older_transactions()
    await reseal.wait_for_older_transactions()


async def test_concurrently_changed_value_is_not_overwritten(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Keyring([MasterKey.generate(), *filled.keyring.keys])
    reseal = Reseal(filled.database, ring)
    other = "NB2W45DFOIZA" * 2
    real = reseal._replace

    async def replace(values: list[SealedValue], walk: Any) -> None:
        if values[0].purpose == totp_purpose("7") and not walk.done:
            monkeypatch.setattr(reseal, "_replace", real)
            sealed = filled.keyring.encrypt(totp_purpose("7"), other)
            await filled.database.run_sql("UPDATE users SET totp_sealed = $1 WHERE user_id = '7'", [sealed])
        await real(values, walk)

    monkeypatch.setattr(reseal_module, "RETRY_S", 0.01)
    users_column = next(pair for pair in sealed_columns() if pair[0].name == "users")
    monkeypatch.setattr(reseal_module, "sealed_columns", lambda: [users_column])
    monkeypatch.setattr(reseal, "_replace", replace)
    assert await reseal.run() == 1
    user = await filled.users.get("7")
    assert user is not None
    assert user.totp_sealed is not None
    assert key_id_of(user.totp_sealed) == ring.keys[0].id
    assert ring.decrypt(totp_purpose("7"), user.totp_sealed) == other


async def test_values_of_many_pages_and_steps_are_resealed(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_value_store, "PAGE_ROWS", 7)
    monkeypatch.setattr(reseal_module, "STEP_VALUES", 3)
    for number in range(100, 123):
        secret = {"totp_secret": TOTP_SECRET} if number % 3 else {}
        await add_user(filled, user_id=str(number), **secret)
    new = MasterKey.generate()
    assert await Reseal(filled.database, Keyring([new, *filled.keyring.keys])).run() == VALUES + 16
    assert await Reseal(filled.database, Keyring([new])).count_outdated() == 0


async def test_values_of_several_old_keys_are_counted_and_resealed(filled: Services) -> None:
    middle, new = MasterKey.generate(), MasterKey.generate()
    await Reseal(filled.database, Keyring([middle, *filled.keyring.keys])).run()
    await add_user(filled, user_id="9", totp_secret=TOTP_SECRET)  # by a process that still has the old key
    ring = Keyring([new, middle, *filled.keyring.keys])
    assert await Reseal(filled.database, ring).count_outdated() == VALUES + 1
    assert await Reseal(filled.database, ring).run() == VALUES + 1
    assert await Reseal(filled.database, ring).count_outdated() == 0
    assert await Reseal(filled.database, Keyring([new])).count_outdated() == 0


async def test_running_service_follows_a_change_of_the_master_key(filled: Services, tmp_path: Path) -> None:
    """The service reads the key file again when it meets a value of the new key, and then seals with that key."""
    path = tmp_path / "secret.key"
    path.write_text(filled.keyring.keys[0].text())
    path.chmod(0o600)
    running = build(filled.settings, filled.database, Keyring.from_file(path))
    await running.keys.load()

    command = Keyring.from_file(path)
    command.add_first(MasterKey.generate())
    await Reseal(filled.database, command).run()
    await add_user(running, user_id="9", totp_secret=TOTP_SECRET)
    assert await Reseal(filled.database, command).count_outdated() == 0
    command.keep_only_first()

    await running.keys.load()
    user = await running.users.get("9")
    assert user is not None
    assert user.totp_sealed is not None
    assert Keyring.from_file(path).decrypt(totp_purpose("9"), user.totp_sealed) == TOTP_SECRET
    user = await running.users.get("7")
    assert user is not None
    assert user.totp_sealed is not None
    assert running.keyring.decrypt(totp_purpose("7"), user.totp_sealed) == TOTP_SECRET
