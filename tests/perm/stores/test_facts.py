"""Cached facts are always those of the database: random changes, each followed by reads with and without a cache."""

import threading
from collections.abc import Awaitable
from random import Random
from typing import Any

import pytest
import trio

from sso.db.connection_share import MAX_WAIT_S, current_share
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.stores import compilation
from sso.perm.stores.cached_facts import CachedFacts, PrefetchedFacts
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.facts_cache import FactsVersion
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts
from tests.perm.endpoints.connections import ROUNDS

USERS, APPLICATIONS = ("1", "2"), (1, 10, 11)
PAIRS = [(user_id, application_id) for user_id in USERS for application_id in APPLICATIONS]
STEPS = ROUNDS or 25

_SETUP = (
    "INSERT INTO projects (id, title) VALUES ('p1', 'One'), ('p2', 'Two')",
    """INSERT INTO applications (application_id, name, project_id) OVERRIDING SYSTEM VALUE
    VALUES (10, 'ten', 'p1'), (11, 'eleven', NULL)""",
    "INSERT INTO user_groups (id, project_id, title) VALUES ('g1', 'p1', 'G1'), ('g2', 'p1', 'G2'), ('g3', 'p2', 'G3')",
    "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann@x.org', 'ann@x.org')",
)
# Every kind of change that facts depend on. {u}, {a}, {g}, {p} and {n} are a user, application, group, project, number.
_CHANGES = (
    "UPDATE users SET tags = ARRAY['t{n}'] WHERE user_id = '{u}'",
    "UPDATE users SET purchases = ARRAY['t{n}'] WHERE user_id = '{u}'",
    "UPDATE users SET login = 'u{n}@x.org' WHERE user_id = '{u}'",
    "DELETE FROM users WHERE user_id = '2'",
    "INSERT INTO users (user_id, login, login_key) VALUES ('2', 'bob@x.org', 'bob@x.org') ON CONFLICT DO NOTHING",
    """INSERT INTO user_records (user_id, application_id, private_data) VALUES ('{u}', {a}, '{{"x": {{"value": {n}}}}}')
    ON CONFLICT (user_id, application_id) DO UPDATE SET private_data = excluded.private_data""",
    """UPDATE user_records SET secret_data = '{{"y": {{"value": {n}}}}}'
    WHERE user_id = '{u}' AND application_id = {a}""",
    "DELETE FROM user_records WHERE user_id = '{u}' AND application_id = {a}",
    "INSERT INTO role_assignments (user_id, application_id, name) VALUES ('{u}', {a}, 'r{n}') ON CONFLICT DO NOTHING",
    "UPDATE role_assignments SET expired = {n} WHERE user_id = '{u}' AND application_id = {a}",
    "DELETE FROM role_assignments WHERE user_id = '{u}' AND application_id = {a} AND name = 'r{n}'",
    "INSERT INTO group_users (group_id, user_id) VALUES ('{g}', '{u}') ON CONFLICT DO NOTHING",
    "DELETE FROM group_users WHERE group_id = '{g}' AND user_id = '{u}'",
    """UPDATE user_groups SET conditions = '[{{"title": "c", "condition": {{"tag": "t{n}"}}}}]' WHERE id = '{g}'""",
    "UPDATE user_groups SET project_id = '{p}' WHERE id = '{g}'",
    "UPDATE user_groups SET tags = ARRAY['project'] WHERE id = '{g}'",
    """INSERT INTO project_members (project_id, user_id, level, role) VALUES ('{p}', '{u}', 'project', 'r{n}')
    ON CONFLICT DO NOTHING""",
    "UPDATE project_members SET ttl = {n} WHERE project_id = '{p}' AND user_id = '{u}'",
    "DELETE FROM project_members WHERE project_id = '{p}' AND user_id = '{u}' AND role = 'r{n}'",
    "UPDATE projects SET removed = NOT removed WHERE id = '{p}'",
    "UPDATE projects SET allow = ARRAY['{g}'] WHERE id = '{p}'",
    "UPDATE projects SET settings = '{{\"allowed_domains\": [\"d{n}.org\"]}}' WHERE id = '{p}'",
    "UPDATE applications SET project_id = '{p}' WHERE application_id = {a} AND {a} <> 1",
    "UPDATE applications SET project_id = NULL WHERE application_id = {a}",
    "UPDATE applications SET removed = NOT removed WHERE application_id = {a} AND {a} <> 1",
    "UPDATE applications SET name = 'n{n}' WHERE application_id = {a}",
    "UPDATE applications SET settings = '{{\"s\": {n}}}' WHERE application_id = {a}",
    "UPDATE applications SET service_meta = '{{\"s\": {n}}}' WHERE application_id = {a}",
    """UPDATE applications SET public_data = '{{"x": {{"value": {n}}}}}', revision = revision + 1
    WHERE application_id = {a}""",
)


def random_change(random: Random) -> Statement:
    return Statement(
        random.choice(_CHANGES).format(
            u=random.choice(USERS),
            a=random.choice(APPLICATIONS),
            g=random.choice(("g1", "g2", "g3")),
            p=random.choice(("p1", "p2")),
            n=random.randint(0, 2),
        )
    )


async def change(tx: Transaction, statements: list[Statement]) -> None:
    for statement in statements:
        await tx.value(statement)


async def load(store: FactsReader, user_id: str, application_id: int) -> LoadedFacts:
    loaded = await store.load(user_id, application_id, None)
    assert loaded is not None
    return loaded


def contents(loaded: LoadedFacts) -> tuple[object, ...]:
    return loaded.facts, loaded.user_exists, loaded.name, loaded.settings, loaded.application.schema


@pytest.fixture
async def filled(database: Database) -> Database:
    await database.transaction(change, [Statement(sql) for sql in _SETUP])
    return database


async def test_cached_facts_are_those_of_the_database_after_every_change(filled: Database) -> None:
    random = Random(20)
    await filled.open_connections()
    cached = CachedFacts(StoredFacts(filled))
    reused = 0
    previous: dict[tuple[str, int], LoadedFacts] = {}
    for _ in range(STEPS):
        statements = [random_change(random) for _ in range(random.randint(1, 2))]
        await filled.transaction(change, statements)
        for pair in PAIRS:
            loaded = await load(cached, *pair)
            assert contents(loaded) == contents(await load(StoredFacts(filled), *pair)), [
                item.sql for item in statements
            ]
            reused += previous.get(pair) is loaded
            previous[pair] = loaded
    assert reused > STEPS  # most changes are not about most pairs


_SWAPS = tuple(
    (
        "DELETE FROM group_users WHERE user_id = '1'",
        f"INSERT INTO group_users (group_id, user_id) VALUES ('{group}', '1')",
    )
    for group in ("g1", "g2")
)


async def test_every_kind_of_change_is_seen(filled: Database) -> None:
    """One after another, with rows that exist already, so that each statement changes something."""
    cached = CachedFacts(StoredFacts(filled))
    rows = (
        "INSERT INTO role_assignments (user_id, application_id, name) VALUES ('1', 10, 'r')",
        "INSERT INTO project_members (project_id, user_id, level, role) VALUES ('p1', '1', 'project', 'r')",
        "INSERT INTO group_users (group_id, user_id) VALUES ('g1', '1')",
        "INSERT INTO user_records (user_id, application_id) VALUES ('1', 10)",
    )
    await filled.transaction(change, [Statement(sql) for sql in rows])
    for number in (1, 2):
        for changes in (*((sql,) for sql in _CHANGES), *_SWAPS):
            statements = [Statement(sql.format(u="1", a=10, g="g1", p="p1", n=number)) for sql in changes]
            for application_id in (1, 10):
                await load(cached, "1", application_id)
            await filled.transaction(change, statements)
            for application_id in (1, 10):
                loaded = await load(cached, "1", application_id)
                assert contents(loaded) == contents(await load(StoredFacts(filled), "1", application_id)), changes


async def test_a_new_connection_makes_cached_facts_invalid(filled: Database) -> None:
    """It may be to another server, after a failover."""
    store = CachedFacts(StoredFacts(filled))
    first = await load(store, "1", 10)
    assert await load(store, "1", 10) is first
    filled.epoch += 1
    assert await load(store, "1", 10) is not first


async def test_facts_of_an_outdated_version_are_read_again(filled: Database) -> None:
    store = CachedFacts(StoredFacts(filled))
    first = await load(store, "1", 10)
    version = FactsVersion("1;2;;;;;", first.application.version, filled.epoch)
    loaded = await load(PrefetchedFacts(store, {("1", 10): version}), "1", 10)
    assert loaded is not first
    assert contents(loaded) == contents(first)


async def test_a_request_that_has_read_versions_needs_no_further_statement(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled.open_connections()
    stored = StoredFacts(filled)
    cached = CachedFacts(stored)
    pairs = [("1", 1), ("1", 10), ("2", 10)]
    calls = 0
    run_now = Database._run_now

    async def counting(self: Database, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return await run_now(self, *arguments, **options)

    monkeypatch.setattr(Database, "_run_now", counting)

    async def count(work: Awaitable[Any]) -> int:
        nonlocal calls
        calls = 0
        await work
        return calls

    await cached.load_pairs(pairs, None)  # compiles the applications
    assert await count(cached.load_pairs(pairs, None)) == 1
    ahead = PrefetchedFacts(cached, (await stored.read_versions(pairs))[0])
    assert await count(ahead.load_many("1", {1: None, 10: None})) == 0
    assert await count(ahead.load_pairs(pairs, None)) == 0
    remembering = PrefetchedFacts(cached, {}, {"1": 3})
    assert await count(remembering.load_pairs(pairs, None)) == 1
    assert await count(remembering.load("2", 10, None)) == 0
    assert (await count(remembering.count_authored("1")), await remembering.count_authored("1")) == (0, 3)


async def test_facts_at_an_application_that_does_not_exist_are_none(filled: Database) -> None:
    store = CachedFacts(StoredFacts(filled))
    assert [await store.load("1", 99, None) for _ in range(2)] == [None, None]


async def test_large_application_is_compiled_once_and_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []  # for each compilation, whether it was done in another thread
    compile_now = compilation._compile

    def compile_seen(*arguments: Any) -> Any:
        threads.append(threading.current_thread() is not threading.main_thread())
        return compile_now(*arguments)

    monkeypatch.setattr(compilation, "_compile", compile_seen)

    async def read(tx: Transaction) -> int:
        application = await compilation.read_application(tx, 10)
        assert application is not None
        return len(application.roles)

    await database.transaction(
        change,
        [
            *map(Statement, _SETUP),
            Statement("""INSERT INTO roles (application_id, name, meta)
                SELECT 10, 'r' || n, jsonb_build_object('x', repeat('x', 100)) FROM generate_series(1, 1000) AS n"""),
        ],
    )
    facts = CachedFacts(StoredFacts(database))
    await database.open_connections()  # what was read before a connection was opened is not cached
    async with trio.open_nursery() as nursery:
        for user_id in USERS:
            nursery.start_soon(facts.load, user_id, 10, None)
    assert threads == [True]
    assert await database.transaction(read) == 1000
    assert threads == [True, True]
    assert await facts.load("1", 11, None) is not None  # a small one is compiled at once
    assert threads == [True, True, False]


async def test_compilation_that_others_wait_for_does_not_wait_for_the_turn_of_its_caller(database: Database) -> None:
    await database.transaction(change, [*map(Statement, _SETUP)])
    facts = CachedFacts(StoredFacts(database))
    await database.open_connections()
    with database.shares.limit_management("user 1", is_root=False):
        use = current_share.get()
        assert use is not None
        async with use.share.turn(use.lanes):  # another request of the same caller takes long
            with trio.fail_after(MAX_WAIT_S / 2):
                assert await facts.load(USERS[0], 10, None)
