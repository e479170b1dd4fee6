"""What a user may do everywhere, and which applications let the user do something, page by page."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from sso.core.errors import NotFound
from sso.core.field_errors import FieldPath, InvalidCursor
from sso.db.database import Database
from sso.db.transaction import run_pure
from sso.perm.engine.render import Options, list_short_entries
from sso.perm.engine.reserved_names import is_application_key
from sso.perm.engine.rule_check import find_rule
from sso.perm.operations.rule_search import HeldRuleAnswer, Reading, held_rule
from sso.perm.stores.applications import read_application_ids
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.loaded_facts import LoadedFacts

APPLICATIONS_AT_ONCE = 20  # read with one statement
MAX_APPLICATIONS = 200  # evaluated in one request


class UserRulesQuestion(Struct, frozen=True):
    user_id: str
    application_id: int | None = None  # None: all applications
    rule: str = ""  # in the notation of ``list`` or ``list_short``; empty for all rules
    at: int | None = None  # a moment of the past
    at_path: FieldPath = ("at",)
    after: str = ""  # ``next`` of the page before
    limit: int = 50
    with_reason: bool = False

    @property
    def cursor(self) -> tuple[int, str]:
        """The application and the rule after which the page begins. Without a rule, the application is complete."""
        application_id, _, rule = self.after.partition("/")
        if self.after and not is_application_key(application_id):
            raise InvalidCursor
        return int(application_id or 0), rule


class UserRule(NamedTuple):
    application_id: int
    rule: str
    answer: HeldRuleAnswer

    def json(self) -> dict[str, Any]:
        return {"application_id": self.application_id, "rule": self.rule, **self.answer.json()}


class UserRulesPage(NamedTuple):
    rules: Sequence[UserRule]  # sorted by application and name
    next: str | None  # the cursor of the next page; None: there is none


class RulesOfUser:
    """Its caller has checked that the answer may be read."""

    def __init__(self, database: Database, facts: StoredFacts) -> None:
        self._database = database
        self._facts = facts

    async def find(self, question: UserRulesQuestion, reading: Reading, caller: str) -> UserRulesPage:
        """Returns a page of rules. ``caller``, such as ``user 1001``, uses one connection at a time.

        A page may have fewer rules than its limit, or none, and a next page, if there are many applications. Raises
        FieldError for a moment that is not in the history.
        """
        application_id, after_rule = question.cursor
        found: list[UserRule] = []
        for _ in range(MAX_APPLICATIONS // APPLICATIONS_AT_ONCE):
            with self._database.shares.limit_evaluation(caller):
                ids = await self._next_applications(question, application_id, with_first=bool(after_rule))
                loaded = await self._load_present(question, ids)
            for next_id in ids:
                with self._database.shares.limit_evaluation(caller):
                    user = loaded.pop(next_id, None) or await self._load(question, reading, next_id, caller)
                if user is None:
                    continue
                if not user.user_exists:
                    raise NotFound("user not found")
                found += await run_pure(self._database, True, _rules, question, reading, user, self._now(question))
                found = [item for item in found if (item.application_id, item.rule) > question.cursor]
                if len(found) > question.limit:
                    last = found[question.limit - 1]
                    return UserRulesPage(found[: question.limit], f"{last.application_id}/{last.rule}")
            if len(ids) < APPLICATIONS_AT_ONCE:
                return UserRulesPage(found, None)
            application_id, after_rule = ids[-1], ""
        return UserRulesPage(found, f"{application_id}/")

    async def _next_applications(self, question: UserRulesQuestion, after: int, *, with_first: bool) -> list[int]:
        """``with_first``: the application ``after`` itself has rules behind the cursor."""
        if question.application_id is not None:
            return [question.application_id]
        return await read_application_ids(self._database, after - with_first, APPLICATIONS_AT_ONCE)

    async def _load_present(self, question: UserRulesQuestion, ids: Sequence[int]) -> dict[int, LoadedFacts]:
        """Returns the facts at applications, without those with so much data that they are loaded one by one."""
        if question.at is not None:
            return {}
        pairs = [(question.user_id, application_id) for application_id in ids]
        loaded = await self._facts.load_pairs(pairs, None)
        return {application_id: facts for (_, application_id), facts in loaded.items()}

    async def _load(
        self, question: UserRulesQuestion, reading: Reading, application_id: int, caller: str
    ) -> LoadedFacts | None:
        """Returns None if the application does not exist, or if it or the user did not exist then."""
        user_id = question.user_id
        if question.at is None:
            return await self._facts.load(user_id, application_id, None)
        try:
            past = await self._facts.past.load(
                user_id, application_id, None, question.at, path=question.at_path, caller=caller
            )
        except NotFound:
            return None
        reading.check_past(past)
        return past

    def _now(self, question: UserRulesQuestion) -> int:
        return int(self._database.clock.now()) if question.at is None else question.at


def _rules(question: UserRulesQuestion, reading: Reading, user: LoadedFacts, now: int) -> list[UserRule]:
    return sorted(_found(question, reading, user, now), key=lambda item: item.rule)


def _found(question: UserRulesQuestion, reading: Reading, user: LoadedFacts, now: int) -> Iterator[UserRule]:
    effective, sections = user.effective(now), reading.sections
    if question.rule:
        groups = find_rule(effective, question.rule, sections)
        entries = {} if groups is None else {question.rule: groups}
    else:
        entries = list_short_entries(effective, Options(sections=sections))
    for name, groups in entries.items():
        answer = held_rule(groups, user, name, now, reading.explain if question.with_reason else None)
        yield UserRule(user.application.application_id, name, answer)
