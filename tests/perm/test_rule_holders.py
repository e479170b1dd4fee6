"""Who has a rule, with limits so small that every way of the search is used. The reference asks about all users."""

from random import Random

import pytest

from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.engine.rule_check import find_rule
from sso.perm.operations import rule_holders
from sso.perm.operations.rule_holders import RuleHolders
from sso.perm.operations.rule_search import ALL_SECTIONS, EVERYTHING, HolderQuestion
from sso.perm.stores import rule_candidates
from sso.perm.stores.facts import StoredFacts
from tests.kit.postgres import execute

APPLICATION, USERS = 10, 30
RULES = ("role", "tag", "own", "both", "everybody", "nobody", "private_data.role", "public_data.own")
_SETUP = (
    "INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE VALUES (10, 'ten')",
    """INSERT INTO roles (application_id, name, meta, condition, "default") VALUES
    (10, 'holder', '{"private_data": {"role": {"value": true}, "both": {"value": true}}}', '{}', false),
    (10, 'tagged', '{"private_data": {"tag": {"value": true}, "both": {"value": true}}}',
        '{"or": [{"tag": "t"}, {"purchase": "p"}, {"domain": "x.org"}]}', false),
    (10, 'all', '{"private_data": {"everybody": {"value": true}}}', '{}', true)""",
)
# What users have, each with some probability.
_GIVEN = (
    "INSERT INTO role_assignments (user_id, application_id, name) VALUES ('{u}', 10, 'holder') ON CONFLICT DO NOTHING",
    "UPDATE users SET tags = '{{t}}' WHERE user_id = '{u}'",
    "UPDATE users SET purchases = '{{p}}' WHERE user_id = '{u}'",
    """INSERT INTO user_records (user_id, application_id, private_data) VALUES ('{u}', 10,
    '{{"own": {{"value": true}}, "role": {{"value": false}}}}') ON CONFLICT DO NOTHING""",
    """INSERT INTO user_records (user_id, application_id, public_data) VALUES ('{u}', 10, '{{"x": {{"value": 1}}}}')
    ON CONFLICT DO NOTHING""",
    """UPDATE users SET bans = '[{{"ban_id": "b", "reason": "", "until": null, "application_id": 10,
    "project_id": null}}]' WHERE user_id = '{u}'""",
)
_TAKEN = "DELETE FROM role_assignments WHERE user_id = '{u}'"
_NEW = """INSERT INTO users (user_id, login, login_key) VALUES ('{u}', 'u{u}@{d}', 'u{u}@{d}')
    ON CONFLICT DO NOTHING"""


async def run(database: Database, sql: str) -> None:
    await database.value(Statement(sql.replace(":", "\\:")))


@pytest.fixture
def filled(dsn: str) -> None:
    random = Random(7)
    statements = [*_SETUP]
    for number in range(USERS):
        user_id = str(random.randrange(1, 10**6))
        statements.append(_NEW.format(u=user_id, d=random.choice(("x.org", "y.org", "z.org"))))
        chance = 0.3 if number % 2 else 0.1
        statements += [given.format(u=user_id) for given in _GIVEN if random.random() < chance]
    execute(dsn, ";".join(statements))


@pytest.fixture
async def holders(filled: None, database: Database, monkeypatch: pytest.MonkeyPatch) -> RuleHolders:
    monkeypatch.setattr(rule_candidates, "WINDOW", 5)
    return RuleHolders(database, StoredFacts(database))


async def all_users(database: Database) -> list[str]:
    return sorted(row["user_id"] for row in await database.rows(Statement("SELECT user_id FROM users")))


async def pages(holders: RuleHolders, rule: str, limit: int) -> list[str]:
    found: list[str] = []
    after: str | None = ""
    for _ in range(500):
        assert after is not None
        page = await holders.find(HolderQuestion(APPLICATION, rule, after=after, limit=limit), EVERYTHING, "test")
        assert len(page.holders) <= limit
        found += [user_id for user_id, _ in page.holders]
        after = page.next
        if after is None:
            return found
    pytest.fail("the pages do not end")


async def test_pages_have_every_user_of_whom_a_check_is_true(
    database: Database, holders: RuleHolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, facts = int(database.clock.now()), StoredFacts(database)
    loaded = await facts.load_pairs([(user_id, APPLICATION) for user_id in await all_users(database)], None)
    expected = {
        rule: sorted(
            pair[0] for pair, user in loaded.items() if find_rule(user.effective(now), rule, ALL_SECTIONS) is not None
        )
        for rule in RULES
    }
    assert sum(map(bool, expected.values())) >= 5
    for few, steps, evaluated in ((1, 10, 2000), (1, 1, 7), (2000, 2, 2000)):
        monkeypatch.setattr(rule_candidates, "MAX_FEW", few)
        monkeypatch.setattr(rule_holders, "MAX_STEPS", steps)
        monkeypatch.setattr(rule_holders, "MAX_EVALUATED", evaluated)
        for rule in RULES:
            for limit in (2, 100):
                assert await pages(holders, rule, limit) == expected[rule], (few, steps, evaluated, rule, limit)


async def test_users_who_keep_the_rule_come_once_while_others_come_and_go(
    database: Database, holders: RuleHolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_candidates, "MAX_FEW", 1)
    random, users = Random(3), await all_users(database)
    steady = set(users[::3])
    for user_id in steady:
        await run(database, _GIVEN[0].format(u=user_id))
    names = ", ".join(f"'{user_id}'" for user_id in steady)
    await run(database, f"DELETE FROM user_records WHERE user_id IN ({names})")
    await run(database, f"UPDATE users SET bans = NULL WHERE user_id IN ({names})")
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await holders.find(HolderQuestion(APPLICATION, "both", after=after, limit=2), EVERYTHING, "test")
        found += [user_id for user_id, _ in page.holders]
        after = page.next
        for user_id in random.sample(sorted(set(users) - steady), 5):  # a writer, between the pages
            await run(database, random.choice((*_GIVEN, _TAKEN)).format(u=user_id))
    assert found == sorted(set(found))
    assert steady <= set(found)
