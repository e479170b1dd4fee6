"""Answers AuthZEN requests: finds the subjects, asks `CheckOperations`, and writes the decisions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sso.accounts.model import login_key
from sso.core.errors import ApiError, NotFound
from sso.core.ids import is_user_id
from sso.perm.authzen.evaluations import Evaluation, EvaluationRequest
from sso.perm.authzen.search import Search, results_page, unknown_token
from sso.perm.caller import Caller
from sso.perm.engine.reserved_names import is_application_key
from sso.perm.operations.checks import CheckAnswer, CheckOperations
from sso.perm.operations.lookups import FindUser
from sso.perm.operations.resource_search import ResourceSearch
from sso.perm.operations.reverse_questions import ReverseQuestions
from sso.perm.operations.rule_search import HolderQuestion
from sso.perm.stores.facts_reader import FactsReader


class AuthzenEndpoint:
    def __init__(
        self, checks: CheckOperations, reverse: ReverseQuestions, resources: ResourceSearch, find_user: FindUser
    ) -> None:
        self._checks = checks
        self._reverse = reverse
        self._resources = resources
        self._find_user = find_user

    async def evaluate(
        self, caller: Caller, request: EvaluationRequest, facts: FactsReader | None = None
    ) -> dict[str, Any]:
        evaluations = await self._with_users(caller, request.evaluations)
        questions = [item.question for item in evaluations if item.question is not None]
        answers = iter(await self._checks.answer(caller, questions, facts, stop_after=request.stop_after))
        return decisions_json(request, evaluations, answers)

    async def list_actions(
        self, caller: Caller, evaluation: Evaluation, facts: FactsReader | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Returns the rules that the subject has, by name, with their parameters. Raises Forbidden."""
        (evaluation,) = await self._with_users(caller, (evaluation,))
        if evaluation.question is None:
            return {}
        try:
            return await self._checks.list_rules(caller, evaluation.question, facts)
        except NotFound:
            return {}

    async def list_subjects(self, caller: Caller, search: Search, facts: FactsReader) -> dict[str, Any]:
        """Returns the users of whom an evaluation says the same. Raises Forbidden."""
        question = search.evaluation.question
        if question is None:
            return results_page(search.type, (), None)
        if search.page.after and not is_user_id(search.page.after):
            raise unknown_token()
        holders = HolderQuestion(
            question.application_id,
            question.rule,
            question.project_id,
            question.param,
            question.at,
            question.at_path,
            search.page.after,
            search.page.limit,
        )
        try:
            page = await self._reverse.who(caller, holders, facts)
        except NotFound:
            return results_page(search.type, (), None)
        return results_page(search.type, [user_id for user_id, _ in page.holders], page.next)

    async def list_resources(self, caller: Caller, search: Search, facts: FactsReader) -> dict[str, Any]:
        """Returns the resources of which an evaluation by the same caller says the same."""
        (evaluation,) = await self._with_users(caller, (search.evaluation,))
        after = search.page.after
        if after and search.type == "application" and not is_application_key(after):
            raise unknown_token()
        if evaluation.question is None:
            return results_page(search.type, (), None)
        question = replace(evaluation.question, with_reason=False)
        page = await self._resources.find(caller, question, search.type, after, search.page.limit, facts)
        return results_page(search.type, page.ids, page.next)

    async def _with_users(self, caller: Caller, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """Finds the subjects that are named by their logins."""
        logins = {item.login for item in evaluations if item.question is not None and item.login}
        user_ids = await self._find_user_ids(caller, logins) if logins else {}
        return [_with_user(item, user_ids) for item in evaluations]

    async def _find_user_ids(self, caller: Caller, logins: Collection[str]) -> dict[str, str]:
        """Returns the ids of the users with these logins.

        A user learns nothing about the logins of other users, so that only the own account is looked up. The
        credentials of an application name any user.
        """
        if caller.user_id:
            own = await self._find_user(caller.user_id)
            return {login: own.user_id for login in logins if own is not None and login_key(login) == own.login_key}
        users = {login: await self._find_user(login) for login in logins}
        return {login: user.user_id for login, user in users.items() if user is not None}


def _with_user(evaluation: Evaluation, user_ids: Mapping[str, str]) -> Evaluation:
    if evaluation.question is None or not evaluation.login:
        return evaluation
    if evaluation.login not in user_ids:
        return Evaluation(None, error=NotFound("user not found"))
    return replace(evaluation, question=replace(evaluation.question, user_id=user_ids[evaluation.login]))


def decisions_json(
    request: EvaluationRequest, evaluations: Sequence[Evaluation], answers: Iterator[CheckAnswer]
) -> dict[str, Any]:
    """Returns the response. ``answers`` are those of the evaluations that have a question."""
    decisions = list(_decisions(evaluations, answers, request.stop_after))
    return decisions[0] if request.is_single else {"evaluations": decisions}


def _decisions(
    evaluations: Sequence[Evaluation], answers: Iterator[CheckAnswer], stop_after: bool | None
) -> Iterator[dict[str, Any]]:
    for evaluation in evaluations:
        answer = CheckAnswer(False, evaluation.error) if evaluation.question is None else next(answers)
        yield _decision(answer)
        if answer.is_allowed is stop_after:
            return


def _decision(answer: CheckAnswer) -> dict[str, Any]:
    decision: dict[str, Any] = {"decision": answer.is_allowed}
    if answer.error is not None:
        decision["context"] = {"error": _error_json(answer.error)}
    elif answer.reason is not None:
        decision["context"] = {"reason": answer.reason}
    return decision


def _error_json(error: ApiError) -> dict[str, Any]:
    return {"status": error.status, "message": str(error.message)}
