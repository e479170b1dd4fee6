"""A read of many permissions leaves the event loop to others: what takes long runs in a thread meanwhile."""

import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import orjson
import pytest
import trio

from sso.core.net import parse_address
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.perm.caller import Caller
from sso.perm.input.questions import Question
from sso.perm.operations import checks, user_data
from sso.perm.operations.user_data import UserDataQuestion
from sso.perm.stores import facts, loaded_facts
from sso.services import Services
from tests.kit.server import LIMIT_S

ENTRIES = 2000  # more than `compilation.LARGE_BYTES`
TURNS = 3
USER, APPLICATION = "5", 10
_SETUP = (
    "INSERT INTO applications (application_id, name) OVERRIDING SYSTEM VALUE VALUES (10, 'large')",
    "INSERT INTO users (user_id, login, login_key) VALUES ('5', 'a@x.org', 'a@x.org')",
    f"""INSERT INTO user_records (application_id, user_id, private_data)
    SELECT 10, '5', jsonb_object_agg('rule' || n, '{{"value": true}}'::jsonb)
    FROM generate_series(1, {ENTRIES}) AS n""",
)


class TurnCounter:
    """Counts the turns of the event loop, and requires some of them while a function runs."""

    def __init__(self) -> None:
        self.turns = 0
        self.watched: list[str] = []
        self._loop = threading.current_thread()

    async def run(self) -> None:
        while True:
            self.turns += 1
            await trio.lowlevel.checkpoint()

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            if _is_large(result):
                self._require_turns(function.__name__)
            return result

        return watched

    def _require_turns(self, name: str) -> None:
        assert threading.current_thread() is not self._loop, f"{name} stops the event loop"
        self.watched.append(name)
        wanted, end = self.turns + TURNS, time.monotonic() + LIMIT_S
        while self.turns < wanted:
            assert time.monotonic() < end, f"the event loop does not turn during {name}"
            time.sleep(0.001)


def _is_large(result: Any) -> bool:
    return len(getattr(result, "rules", result)) >= ENTRIES


async def _set_up(tx: Transaction) -> None:
    for sql in _SETUP:
        await tx.value(Statement(sql))


@pytest.fixture
async def caller(services: Services) -> Caller:
    await services.database.transaction(_set_up)
    await services.database.open_connections()  # facts that were read before a new one is opened are read again
    return Caller(USER, parse_address("127.0.0.1"), now=int(services.database.clock.now()), has_factor=True)


async def test_large_reads_leave_the_event_loop_to_others(
    services: Services, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = services.permissions.operations
    counter = TurnCounter()
    for module, name in ((loaded_facts, "compute_permissions"), (user_data, "render"), (checks, "rule_index")):
        monkeypatch.setattr(module, name, counter.watch(getattr(module, name)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(counter.run)
        for kind in ("list", "list_short", "list"):
            question = UserDataQuestion(USER, APPLICATION, kind)
            answer = await operations.user_data.answer(caller, question, as_json=True)
            assert isinstance(answer, bytes)
            assert len(orjson.loads(answer)["data"]) == ENTRIES
        (allowed,) = await operations.checks.answer(caller, [Question(USER, APPLICATION, "rule7")])
        assert allowed.is_allowed
        nursery.cancel_scope.cancel()
    assert counter.watched == ["compute_permissions", "render", "render", "rule_index"]  # each once


async def test_past_and_reasons_of_a_user_with_many_rules_are_computed_in_a_thread(
    services: Services, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations, threads = services.permissions.operations, dict[str, threading.Thread]()

    def watch(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            threads[name] = threading.current_thread()
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    for module, name in ((loaded_facts, "compute_permissions"), (user_data, "render"), (checks, "explain_json")):
        watch(module, name)
    past = UserDataQuestion(USER, APPLICATION, at=caller.now)
    assert len((await operations.user_data.read(caller, past))["data"]) == ENTRIES
    asked = [Question(USER, APPLICATION, "rule7", with_reason=True, at=at) for at in (None, caller.now)]
    answers = await operations.checks.answer(caller, asked)
    assert [answer.reason and answer.reason["held"] for answer in answers] == [True, True]
    assert threads.keys() == {"compute_permissions", "render", "explain_json"}
    assert threading.main_thread() not in threads.values()


async def test_check_answers_about_all_users_with_much_data(
    services: Services, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "MAX_PAIRS_DATA", 0)  # the facts about one user are in memory at a time
    await services.database.transaction(_add_users)
    asked = [(user_id, f"rule{number}") for number in (1, ENTRIES + 1) for user_id in ("5", "6", "7", "8")]
    questions = [Question(user_id, APPLICATION, rule) for user_id, rule in asked]
    service = caller._replace(user_id="", service_id=APPLICATION)
    answers = await services.permissions.operations.checks.answer(service, questions)
    assert [answer.is_allowed for answer in answers] == [True, False, True, False] + [False] * 4
    assert [answer.error is not None for answer in answers] == [False, False, False, True] * 2  # there is no user 8


async def test_check_does_not_look_for_users_of_applications_that_do_not_exist(
    services: Services, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(_one: object, pair: tuple[str, int]) -> None:
        raise AssertionError(pair)

    monkeypatch.setattr(checks._OneUser, "load", load)
    questions = [Question(USER, application_id, "rule7") for application_id in (404, APPLICATION)]
    answers = await services.permissions.operations.checks.answer(caller, questions)
    assert [(answer.is_allowed, answer.error is None) for answer in answers] == [(False, False), (True, True)]


async def _add_users(tx: Transaction) -> None:
    users = ", ".join(f"('{user_id}', '{user_id}@x.org', '{user_id}@x.org')" for user_id in ("6", "7"))
    await tx.value(Statement(f"INSERT INTO users (user_id, login, login_key) VALUES {users}"))
    record = """INSERT INTO user_records (application_id, user_id, private_data)
        SELECT application_id, '7', private_data FROM user_records"""
    await tx.value(Statement(record))
