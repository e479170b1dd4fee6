"""The applications that a caller may see."""

import threading
from typing import Any

import pytest

from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm import visibility
from sso.perm.authorization import Authorizer
from sso.perm.caller import Caller
from sso.perm.engine.required_rights import Operation
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.seed import seed_central_application
from sso.perm.visibility import FEW_ROWS, Visibility

LAST = 10 + FEW_ROWS
_SETUP = (
    "INSERT INTO projects (id, title) VALUES ('p', 'P')",
    f"""INSERT INTO applications (application_id, name, project_id) OVERRIDING SYSTEM VALUE
    SELECT n, 'Game ' || n, 'p' FROM generate_series(10, {LAST}) n""",
    "INSERT INTO users (user_id, login, login_key) VALUES ('1', 'ann@x.org', 'ann@x.org')",
    "INSERT INTO project_members (project_id, user_id, level, role) VALUES ('p', '1', 'project', 'viewer')",
)


async def test_rights_at_the_applications_of_a_large_project_are_computed_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []  # for each computation, whether it was done in another thread
    compute = visibility._allowed_applications

    def seen(*arguments: Any) -> frozenset[int]:
        threads.append(threading.current_thread() is not threading.main_thread())
        return compute(*arguments)

    monkeypatch.setattr(visibility, "_allowed_applications", seen)
    await seed_central_application(database)
    for sql in _SETUP:
        await database.value(Statement(sql))
    caller = Caller("1", None, now=int(database.clock.now()), has_factor=True)
    reader = Visibility(database, Authorizer(StoredFacts(database)))
    for last in (LAST, 12):
        await database.value(Statement(f"DELETE FROM applications WHERE application_id > {last}"))
        visible = await reader.applications(caller, Operation.APPLICATION_GET)
        assert (visible.everything, visible.ids) == (False, frozenset(range(10, last + 1)))
    assert threads == [True, False]
