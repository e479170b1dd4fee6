"""Answers whether users have rules.

The answers are those of meta/data: a rule is allowed if a get of ``list`` or ``list_short`` would show it. A question
that the caller may not ask, or about a user that does not exist, gets the error that the get would return. The other
questions are answered all the same.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import trio

from sso.core.errors import ApiError, Forbidden, NotFound
from sso.perm.authorization import Authorizer, CallerRights, missing_sections
from sso.perm.caller import Caller
from sso.perm.engine.render import Options, SourceGroups, entry_params
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rule_check import covers_param, is_full_name, project_prefix, rule_index, sections_of
from sso.perm.engine.rules import LISTED_SECTIONS
from sso.perm.input.questions import Question
from sso.perm.operations.explain import explain_json
from sso.perm.operations.user_data import readable_sections, refuse_other_project, require_target
from sso.perm.stores.facts_reader import FactsReader, UserAt
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.telemetry.counters import PERMISSION_CHECKS

QUESTIONS_PER_TURN = 20  # then other requests have a turn

_OTHER_PROJECT = "the application does not belong to this project"
_ALL_SECTIONS = frozenset((*LISTED_SECTIONS, "roles"))


class CheckAnswer(NamedTuple):
    is_allowed: bool
    error: ApiError | None = None  # the question was not answered
    reason: dict[str, Any] | None = None  # if the question asks for it


class CheckOperations:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def answer(
        self,
        caller: Caller,
        questions: Sequence[Question],
        facts: FactsReader | None = None,
        *,
        stop_after: bool | None = None,
    ) -> list[CheckAnswer]:
        """Returns the answers in the order of the questions, up to the first one that is ``stop_after``."""
        authorizer = self._authorizer.with_facts(facts)
        loaded = await _load(authorizer, caller, questions)
        applications = {question.application_id for question in questions}
        rights = {item: await _rights(authorizer, caller, item) for item in applications}
        answers: list[CheckAnswer] = []
        reasons, one = Reasons(), _OneUser(authorizer, caller)
        for number, question in enumerate(questions, 1):
            rights_there = rights[question.application_id]
            user: LoadedFacts | ApiError | None = loaded.get(question.pair)
            if isinstance(rights_there, Forbidden):
                pass  # the answer has it
            elif question.at is not None:
                user = await _load_past(authorizer, caller, rights_there, question, question.at)
            elif user is None and rights_there.target_facts is not None:
                user = await one.load(question.pair)
            answers.append(await _answer(authorizer, caller, question, rights_there, user, reasons))
            if answers[-1].is_allowed is stop_after:
                break
            if question.with_reason or number % QUESTIONS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
        return answers

    async def list_rules(
        self, caller: Caller, question: Question, facts: FactsReader | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Returns the rules of the user that a question with this target could be about, with their parameters.

        The names are those of ``list_short``, without the project. Raises ApiError as a get does.
        """
        authorizer = self._authorizer.with_facts(facts)
        loaded = await _load(authorizer, caller, (question,))
        rights = await authorizer.caller_rights(caller, question.application_id)
        if question.at is None:
            user: LoadedFacts | ApiError | None = loaded.get(question.pair)
            user = user or await authorizer.facts.load(*question.pair, caller.address)
        else:
            user = await _load_past(authorizer, caller, rights, question, question.at)
        sections = _readable(caller, question, rights)
        found, now = _require_user(question, user), _moment(caller, question)
        if found.is_large:
            await _prepare_index(authorizer, found, sections, now)
        prefix = _prefix(question, found, now)
        PERMISSION_CHECKS.add("check")
        return {
            name.removeprefix(prefix): entry_params(source_groups)
            for name, source_groups in _index(found, sections, now).items()
            if prefix is not None and name.startswith(prefix) and not is_full_name(name)
        }


class _OneUser:
    """Loads users with too much data for all of them to be in memory together: the last one is kept."""

    def __init__(self, authorizer: Authorizer, caller: Caller) -> None:
        self._facts = authorizer.facts
        self._address = caller.address
        self._kept: tuple[UserAt, LoadedFacts | None] | None = None

    async def load(self, pair: UserAt) -> LoadedFacts | None:
        if self._kept is None or self._kept[0] != pair:
            self._kept = None
            self._kept = pair, await self._facts.load(*pair, self._address)
        return self._kept[1]


async def _load(authorizer: Authorizer, caller: Caller, questions: Sequence[Question]) -> dict[UserAt, LoadedFacts]:
    """Loads the facts about the caller and the users of questions about the present, with few statements.

    Those of users with much data may be left out.
    """
    applications = {question.application_id for question in questions}
    pairs = {(caller.user_id, application_id) for application_id in (CENTRAL_APPLICATION_ID, *applications)}
    pairs.update(question.pair for question in questions if question.at is None)
    return await authorizer.facts.load_pairs(pairs, caller.address)


async def _answer(
    authorizer: Authorizer,
    caller: Caller,
    question: Question,
    rights: CallerRights | ApiError,
    user: LoadedFacts | ApiError | None,
    reasons: "Reasons",
) -> CheckAnswer:
    """Computes in a thread what takes long: with many rules, or roles that an explanation looks at."""
    if isinstance(user, LoadedFacts) and user.is_large and not isinstance(rights, ApiError):
        now = _moment(caller, question)
        if question.with_reason:
            return await user.compute(
                authorizer.facts.run_in_thread,
                now,
                lambda facts: answer_question(caller, question, rights, facts, reasons),
            )
        with suppress(ApiError):  # the answer has it
            await _prepare_index(authorizer, user, _readable(caller, question, rights), now)
    return answer_question(caller, question, rights, user, reasons)


async def _prepare_index(authorizer: Authorizer, user: LoadedFacts, sections: frozenset[str], now: int) -> None:
    name = "index", sections
    await user.compute_in_thread(authorizer.facts.run_in_thread, name, now, lambda facts: _index(facts, sections, now))


async def _rights(authorizer: Authorizer, caller: Caller, application_id: int) -> CallerRights | Forbidden:
    """The rights of the caller, or the error if the credentials are not valid for the application."""
    try:
        return await authorizer.caller_rights(caller, application_id)
    except Forbidden as error:
        return error


async def _load_past(
    authorizer: Authorizer, caller: Caller, rights: CallerRights, question: Question, at: int
) -> LoadedFacts | ApiError:
    """Returns the facts at a moment of the past, or the error that a get would return. Raises FieldError."""
    try:
        target = require_target(rights, "canRead", ())
        past = await authorizer.facts.past.load(
            question.user_id,
            question.application_id,
            caller.address,
            at,
            path=question.at_path,
            caller=caller.subject,
        )
        if not rights.is_root and (question.user_id != caller.user_id or question.with_reason):
            refuse_other_project(target, past)
    except (Forbidden, NotFound) as error:
        return error
    return past


def answer_question(
    caller: Caller,
    question: Question,
    rights: CallerRights | ApiError,
    user: LoadedFacts | ApiError | None,
    reasons: "Reasons",
) -> CheckAnswer:
    """Answers one question from facts that were loaded, or with the error that a get would return."""
    now = _moment(caller, question)
    PERMISSION_CHECKS.add("check")
    try:
        if isinstance(rights, ApiError):
            raise rights
        sections = _readable(caller, question, rights)
        user = _require_user(question, user)
        is_allowed = _is_allowed(question, user, sections, now)
    except ApiError as error:
        return CheckAnswer(False, error)
    if not question.with_reason:
        return CheckAnswer(is_allowed)
    return CheckAnswer(is_allowed, reason=reasons.get(question, rights, user, sections, now))


def _moment(caller: Caller, question: Question) -> int:
    return caller.now if question.at is None else question.at


def _require_user(question: Question, user: LoadedFacts | ApiError | None) -> LoadedFacts:
    if isinstance(user, ApiError):
        raise user
    if not question.user_id or user is None or not user.user_exists:
        raise NotFound("user not found")
    if user.is_removed:
        raise Forbidden("removed")
    return user


def _index(user: LoadedFacts, sections: frozenset[str], now: int) -> Mapping[str, SourceGroups]:
    return user.remember(("index", sections), now, lambda: rule_index(user.effective(now), sections))


def _readable(caller: Caller, question: Question, rights: CallerRights) -> frozenset[str]:
    """Returns the sections that the caller may read. Raises Forbidden as a get does.

    An access key or a service reads the listed sections of every user at its application.
    """
    require_target(rights, "canRead", ())
    if not caller.user_id and (caller.key or rights.granted.service):
        return _ALL_SECTIONS
    return readable_sections(caller, rights, own=question.user_id == caller.user_id)


def _is_allowed(question: Question, user: LoadedFacts, sections: frozenset[str], now: int) -> bool:
    """Raises Forbidden if the answer depends on a section that the caller may not read."""
    name = _name(question, user, now)
    source_groups = _index(user, sections, now).get(name) if name else None
    if source_groups is not None:
        return covers_param(source_groups, question.param)
    hidden = sections_of(question.rule) - sections
    if hidden:
        raise missing_sections("canRead", hidden)
    return False


def _name(question: Question, user: LoadedFacts, now: int) -> str:
    """The name of the rule in a list; empty if the application does not belong to the project of the question."""
    prefix = _prefix(question, user, now)
    return "" if prefix is None else prefix + question.rule


def _prefix(question: Question, user: LoadedFacts, now: int) -> str | None:
    """What the names of rules begin with, if they belong to a project; None if the application does not."""
    project = question.project_id
    if project is None:
        return ""
    if question.application_id == CENTRAL_APPLICATION_ID:
        return project_prefix(user.effective(now), project)
    home = user.facts.home
    return "" if home is not None and home.is_named(project) else None


class Reasons:
    """The explanations of one request, by one caller. Each rule of a user at an application is explained once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int, int | None, str], dict[str, Any]] = {}

    def get(
        self, question: Question, rights: CallerRights, user: LoadedFacts, sections: frozenset[str], now: int
    ) -> dict[str, Any]:
        """Returns the explanation of the rule, as with ``options.explain`` of a get."""
        name = _name(question, user, now)
        if not name:
            other_project = [{"reason": "other_project", "text": _OTHER_PROJECT}]
            return {"rule": question.rule, "held": False, "reasons": other_project}
        key = (*question.pair, question.at, name)
        if key not in self._made:
            self._made[key] = _explained(name, rights, user, sections, now)
        return self._made[key]


def _explained(
    name: str, rights: CallerRights, user: LoadedFacts, sections: frozenset[str], now: int
) -> dict[str, Any]:
    try:
        explained = explain_json(name, rights, user, user.effective(now), Options(sections=sections), short=True)
    except Forbidden as error:
        return {"error": str(error.message)}
    reason: dict[str, Any] = explained["explain"]
    return reason
