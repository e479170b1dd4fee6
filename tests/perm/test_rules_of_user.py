"""What a user may do everywhere."""

from typing import Any

import pytest

from sso.core.net import Address
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.operations import rules_of_user
from sso.perm.operations.rule_search import EVERYTHING
from sso.perm.operations.rules_of_user import RulesOfUser, UserRulesQuestion
from sso.perm.stores import facts
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.loaded_facts import LoadedFacts

_SETUP = (
    """INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE
    VALUES (10, 'ten'), (11, 'eleven'), (12, 'twelve')""",
    "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann@x.org', 'ann@x.org')",
    """INSERT INTO user_records (user_id, application_id, private_data)
    SELECT '1', n, '{"kick": {"value": true}}' FROM generate_series(10, 12) n""",
)


async def test_applications_where_a_user_has_much_data_are_not_in_memory_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[object] = []  # the applications that are loaded one by one, and the evaluations
    evaluate = rules_of_user._rules

    class SeenFacts(StoredFacts):
        async def load(self, user_id: str, application_id: int, address: Address | None) -> LoadedFacts | None:
            work.append(application_id)
            return await super().load(user_id, application_id, address)

    def seen(*arguments: Any) -> Any:
        work.append("evaluation")
        return evaluate(*arguments)

    for sql in _SETUP:
        await database.value(Statement(sql))
    monkeypatch.setattr(rules_of_user, "_rules", seen)
    monkeypatch.setattr(facts, "MAX_PAIRS_DATA", 0)
    page = await RulesOfUser(database, SeenFacts(database)).find(UserRulesQuestion("1"), EVERYTHING, "test")
    assert [(rule.application_id, rule.rule) for rule in page.rules] == [(10, "kick"), (11, "kick"), (12, "kick")]
    loads = [index for index, item in enumerate(work) if item != "evaluation"]
    assert len(loads) >= 2
    assert all(work[index + 1] == "evaluation" for index in loads)
