"""POST /api/permissions/check: whether users have rules, up to 100 questions in one request.

The answers are those of meta/data: a rule is allowed if a get of ``list`` or ``list_short`` would show it. A question
that the caller may not ask, or about a user that does not exist, gets the error that the get would return. The other
questions are answered all the same.
"""

from typing import Any

import orjson
import trio

from sso.core.errors import ApiError, Forbidden, NotFound
from sso.perm.authorization import Authorizer, CallerRights, missing_sections
from sso.perm.caller import Caller
from sso.perm.engine.render import Options
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rule_check import covers_param, project_rule, rule_index, sections_of
from sso.perm.input.questions import Question, read_check_options, read_questions
from sso.perm.operations.explain import explain_json
from sso.perm.operations.user_data import readable_sections, require_target
from sso.perm.request import PermissionRequest
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.telemetry.counters import PERMISSION_CHECKS

QUESTIONS_PER_TURN = 20  # then other requests have a turn

_OTHER_PROJECT = "the application does not belong to this project"


class CheckEndpoint:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def check(self, request: PermissionRequest) -> bytes:
        caller = request.caller
        with_reason, warnings = read_check_options(request.fields.get("options", {}))
        default_application = request.fields.get("application_id")
        questions, more = read_questions(
            request.required_data(), caller.user_id, default_application, with_reason=with_reason
        )
        request.warnings.extend((*warnings, *more))
        applications = {question.application_id for question in questions}
        pairs = {(caller.user_id, application_id) for application_id in (CENTRAL_APPLICATION_ID, *applications)}
        pairs.update(question.pair for question in questions)
        authorizer = self._authorizer.with_facts(request.facts)
        loaded = await authorizer.facts.load_pairs(pairs, caller.address)
        rights = {item: await _rights(authorizer, caller, item) for item in applications}
        answers, reasons = [], Reasons() if with_reason else None
        for number, question in enumerate(questions, 1):
            answers.append(_answer(caller, question, rights[question.application_id], loaded, reasons))
            PERMISSION_CHECKS.add("check")
            if reasons is not None or number % QUESTIONS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
        return orjson.dumps(request.response(data=answers))


async def _rights(authorizer: Authorizer, caller: Caller, application_id: int) -> CallerRights | Forbidden:
    """The rights of the caller, or the error if the credentials are not valid for the application."""
    try:
        return await authorizer.caller_rights(caller, application_id)
    except Forbidden as error:
        return error


def _answer(
    caller: Caller,
    question: Question,
    rights: CallerRights | Forbidden,
    loaded: dict[tuple[str, int], LoadedFacts],
    reasons: "Reasons | None",
) -> dict[str, Any]:
    try:
        if isinstance(rights, Forbidden):
            return {"allow": False, "error": str(rights.message)}
        sections = _readable(caller, question, rights)
        user = loaded.get(question.pair)
        if not question.user_id or user is None or not user.user_exists:
            raise NotFound("user not found")
        if user.is_removed:
            raise Forbidden("removed")
        answer: dict[str, Any] = {"allow": _is_allowed(question, user, sections, caller.now)}
    except ApiError as error:
        return {"allow": False, "error": str(error.message)}
    if reasons is not None:
        answer["reason"] = reasons.get(question, rights, user, sections, caller.now)
    return answer


def _readable(caller: Caller, question: Question, rights: CallerRights) -> frozenset[str]:
    """Returns the sections that the caller may read. Raises Forbidden as a get does."""
    require_target(rights, "canRead", ())
    if not caller.user_id:
        raise Forbidden
    return readable_sections(caller, rights, own=question.user_id == caller.user_id)


def _is_allowed(question: Question, user: LoadedFacts, sections: frozenset[str], now: int) -> bool:
    """Raises Forbidden if the answer depends on a section that the caller may not read."""
    index = user.remember(("index", sections), now, lambda: rule_index(user.effective(now), sections))
    name = _name(question, user, now)
    source_groups = index.get(name) if name else None
    if source_groups is not None:
        return covers_param(source_groups, question.param)
    hidden = sections_of(question.rule) - sections
    if hidden:
        raise missing_sections("canRead", hidden)
    return False


def _name(question: Question, user: LoadedFacts, now: int) -> str:
    """The name of the rule in a list; empty if the application does not belong to the project of the question."""
    project = question.project_id
    if project is None:
        return question.rule
    if question.application_id == CENTRAL_APPLICATION_ID:
        return project_rule(user.effective(now), project, question.rule)
    home = user.facts.home
    return question.rule if home is not None and home.is_named(project) else ""


class Reasons:
    """The explanations of one request, by one caller. Each rule of a user at an application is explained once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int, str], dict[str, Any]] = {}

    def get(
        self, question: Question, rights: CallerRights, user: LoadedFacts, sections: frozenset[str], now: int
    ) -> dict[str, Any]:
        """Returns the explanation of the rule, as with ``options.explain`` of a get."""
        name = _name(question, user, now)
        if not name:
            other_project = [{"reason": "other_project", "text": _OTHER_PROJECT}]
            return {"rule": question.rule, "held": False, "reasons": other_project}
        key = (*question.pair, name)
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
