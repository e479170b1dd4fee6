"""Who may do this: the users who have a rule at an application, page by page, in the order of their ids.

Candidates are found by what can give the rule, with bounded work, and each of them is evaluated by the same engine as a
check. What one page reads of the present is of one moment. A page may have fewer users than its limit, or none, and a
next page: then the work of the request was used up before so many were found.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from sso.core.errors import NotFound
from sso.core.field_errors import InvalidCursor
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.evaluation import FEW_USERS, chunks, facts_of, parts
from sso.perm.operations.rule_search import (
    HeldRuleAnswer,
    HolderQuestion,
    Reading,
    RuleSearch,
    begin_search,
    next_candidates,
    past_candidates,
)
from sso.perm.stores import rule_candidates
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.permission_state import PermissionState
from sso.perm.stores.rule_candidates import CandidatePage
from sso.perm.stores.user_rows import EncodedUserReader, UserRow, decode_users

SEARCH_S = 30.0
MAX_STEPS = 10  # of the search for candidates, in one request
MAX_EVALUATED = 2_000  # users, in one request
MAX_EVALUATED_PAST = 200  # each is read by a statement of its own


class HolderPage(NamedTuple):
    holders: Sequence[tuple[str, HeldRuleAnswer]]  # by user id
    next: str | None  # the cursor of the next page; None: there is none


class RuleHolders:
    """Its caller has checked that the answer may be read."""

    def __init__(self, database: Database, facts: StoredFacts) -> None:
        self._database = database
        self._facts = facts

    async def find(self, question: HolderQuestion, reading: Reading, caller: str) -> HolderPage:
        """Returns a page of users. ``caller``, such as ``user 1001``, uses one connection at a time.

        Raises NotFound if the application does not exist, and FieldError for a moment that is not in the history.
        """
        if question.after and not is_user_id(question.after):
            raise InvalidCursor
        if question.at is not None:
            return await self._find_past(question, reading, question.at, caller)
        with self._database.shares.limit_evaluation(caller):
            return await self._database.long_transaction(SEARCH_S, self._find_present, question, reading)

    async def _find_present(self, tx: Transaction, question: HolderQuestion, reading: Reading) -> HolderPage:
        await rule_candidates.begin_snapshot(tx)
        application_id = question.application_id
        state = await PermissionState.read(tx, (application_id,), ())
        if application_id not in state.applications:
            raise NotFound("application not found")
        await state.compile(tx, self._facts, (application_id,))
        search = await begin_search(tx, question, reading, state.compiled[application_id], state.home(application_id))
        if search is None:
            return HolderPage((), None)
        await state.read_projects(tx, (search.project_id,) if search.project_id else ())
        now, is_large = int(self._database.clock.now()), state.compiled[application_id].is_large

        async def evaluate(user_ids: Sequence[str]) -> list[tuple[str, HeldRuleAnswer]]:
            found: list[tuple[str, HeldRuleAnswer]] = []
            async for encoded in EncodedUserReader(tx, application_id, user_ids):
                rows, takes_long = await decode_users(tx, encoded), is_large or encoded.is_large
                for part in parts(list(rows.values()), is_large=is_large):
                    work = search, state, part, now
                    found += await run_pure(tx, len(part) > FEW_USERS or takes_long, _evaluate, *work)
            return found

        collected = _Collected(question.limit, MAX_EVALUATED)
        page = CandidatePage((), question.after)
        for _ in range(MAX_STEPS):
            assert page.covered is not None
            page = await next_candidates(tx, search, page.covered)
            for chunk in chunks(page.ids):
                collected.add(chunk, await evaluate(chunk))
                if collected.is_full:
                    return collected.page()
            if page.covered is None:
                return collected.page()
        return collected.page(page.covered)

    async def _find_past(self, question: HolderQuestion, reading: Reading, at: int, caller: str) -> HolderPage:
        past, path = self._facts.past, question.at_path
        then = await past.load_application(question.application_id, at, path=path, caller=caller)
        reading.check_past(then)
        collected = _Collected(question.limit, MAX_EVALUATED_PAST)
        after: str | None = question.after
        for _ in range(MAX_STEPS):
            assert after is not None
            with self._database.shares.limit_evaluation(caller):
                found = await self._database.long_transaction(
                    SEARCH_S, past_candidates, question, reading, at, then, after
                )
            if found is None:
                return HolderPage((), None)
            search, page = found
            for user_id in page.ids:
                answer = None
                with suppress(NotFound):  # the user did not exist then, or is erased
                    user = await past.load(user_id, question.application_id, None, at, path=path, caller=caller)
                    answer = await run_pure(self._database, user.is_large, search.find, user, at)
                collected.add((user_id,), [(user_id, answer)] if answer else [])
                if collected.is_full:
                    return collected.page()
            if page.covered is None:
                return collected.page()
            after = page.covered
        return collected.page(after)


class _Collected:
    """The holders of a page, and one more if there is a next page."""

    def __init__(self, limit: int, max_evaluated: int) -> None:
        self._limit = limit
        self._left = max_evaluated
        self._holders: list[tuple[str, HeldRuleAnswer]] = []
        self._last = ""  # the last user who was evaluated

    def add(self, user_ids: Sequence[str], holders: Sequence[tuple[str, HeldRuleAnswer]]) -> None:
        self._holders += holders
        self._left -= len(user_ids)
        self._last = user_ids[-1]

    @property
    def is_full(self) -> bool:
        return len(self._holders) > self._limit or self._left <= 0

    def page(self, covered: str | None = None) -> HolderPage:
        """``covered`` is the last id up to which all candidates were evaluated, if there may be more behind it."""
        shown = self._holders[: self._limit]
        if len(self._holders) > self._limit:
            return HolderPage(shown, shown[-1][0])
        return HolderPage(shown, covered or (self._last if self._left <= 0 else None))


def _evaluate(
    search: RuleSearch, state: PermissionState, rows: Sequence[UserRow], now: int
) -> list[tuple[str, HeldRuleAnswer]]:
    application_id = search.question.application_id
    application, found = state.compiled[application_id], []
    for row in rows:
        if row.is_alias:  # the account that the user was merged into is a candidate itself
            continue
        members = {search.project_id: row.members[search.project_id]} if search.project_id in row.members else {}
        facts = replace(facts_of(state, application_id, row._replace(members=members)), bans=row.bans)
        answer = search.find(LoadedFacts(application, facts, True, "", {}), now)
        if answer is not None:
            found.append((row.user.user_id, answer))
    return found
