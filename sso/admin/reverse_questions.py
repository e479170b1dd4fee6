"""/api/admin/applications/{application_id}/who and /api/admin/users/{user_id}/can: questions in the other direction."""

from typing import Annotated

from pydantic import Field

from sso.admin.answers.permissions import RuleHolderJson, UserRuleJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import (
    RecordAccess,
    path_application_id,
    path_user_id,
    permission_route,
)
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, ListQuery, list_response
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden
from sso.core.ids import MAX_APPLICATION_ID
from sso.perm.engine.required_rights import Operation
from sso.perm.input.options import MAX_RULE_NAME
from sso.perm.operations.reverse_questions import ReverseQuestions
from sso.perm.operations.rule_search import HolderQuestion
from sso.perm.operations.rules_of_user import UserRulesQuestion
from sso.perm.visibility import Visibility
from sso.web.request_model import QueryFlag, WholeNumber, at_most


class _ReverseQuery(ListQuery):
    at: Annotated[WholeNumber, Field(ge=0)] | None = None  # a moment in the past, in Unix seconds
    reason: QueryFlag = False  # explain why the user has the rule


class WhoQuery(_ReverseQuery):
    rule: Annotated[str, at_most(MAX_RULE_NAME, at_least=1)]
    project_id: Annotated[str, at_most(64, at_least=1)] | None = None


class CanQuery(_ReverseQuery):
    rule: Annotated[str, at_most(MAX_RULE_NAME)] = ""
    application_id: Annotated[WholeNumber, Field(ge=1, le=MAX_APPLICATION_ID)] | None = None


class ReverseQuestionResource:
    def __init__(self, questions: ReverseQuestions, visibility: Visibility) -> None:
        self._questions = questions
        self._visibility = visibility
        self._access = RecordAccess(visibility, "application", Operation.APPLICATION_GET, AdminRight.VIEW_APPLICATIONS)

    async def who(self, request: AdminRequest) -> AdminResponse:
        """Returns the users who have the rule, by id. Conditions on the address of the client count as not met.

        A page may have fewer users than `limit`, or none, and a `next` page.
        """
        query: WhoQuery = request.query
        application_id, sees_users = path_application_id(request), request.caller.sees_users
        if not sees_users:
            await self._require_sections(request, application_id)
        question = HolderQuestion(
            application_id,
            query.rule,
            query.project_id,
            at=query.at,
            after=query.after,
            limit=query.limit,
            with_reason=query.reason,
        )
        page = await self._questions.who(request.caller.permissions, question, sees_users=sees_users)
        return list_response([{"user_id": user_id, **answer.json()} for user_id, answer in page.holders], page.next)

    async def can(self, request: AdminRequest) -> AdminResponse:
        """Returns the rules of the user at all applications or one, or where the user has the rule of the query."""
        query: CanQuery = request.query
        user_id, sees_users = path_user_id(request), request.caller.sees_users
        if not sees_users and query.application_id is not None:
            await self._require_sections(request, query.application_id)
        question = UserRulesQuestion(
            user_id,
            query.application_id,
            query.rule,
            query.at,
            after=query.after,
            limit=query.limit,
            with_reason=query.reason,
        )
        page = await self._questions.can(request.caller.permissions, question, sees_users=sees_users)
        return list_response([item.json() for item in page.rules], page.next)

    async def _require_sections(self, request: AdminRequest, application_id: int) -> None:
        """Raises NotFound or Forbidden as for the permissions of a user. An application may be hidden."""
        try:
            await self._visibility.require_sections(request.caller.permissions, application_id, "roles", "private_data")
        except Forbidden:
            await self._access.require(request, application_id)
            raise


def reverse_question_routes(questions: ReverseQuestionResource) -> tuple[AdminRoute, ...]:
    return (
        permission_route(
            "GET",
            "/applications/<application_id>/who",
            AdminRight.VIEW_USERS,
            questions.who,
            WhoQuery,
            other_right=AdminRight.VIEW_APPLICATIONS,
            answer=AnswerShape(RuleHolderJson),
            operation="list_rule_holders",
            summary="List the users who may do something",
            states_revision=True,
        ),
        permission_route(
            "GET",
            "/users/<user_id>/can",
            AdminRight.VIEW_USERS,
            questions.can,
            CanQuery,
            other_right=AdminRight.VIEW_APPLICATIONS,
            answer=AnswerShape(UserRuleJson),
            operation="list_user_rules",
            summary="List what a user may do",
            states_revision=True,
        ),
    )
