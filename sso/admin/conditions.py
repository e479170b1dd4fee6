"""/api/admin/conditions: whether a condition holds for a user at an address, who meets it, and values to compare."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from sso.accounts.model import User
from sso.accounts.user_attribute_store import suggest_attributes
from sso.accounts.user_store import UserStore
from sso.admin.answers.permissions import ConditionMatchesJson, ConditionSuggestionsJson, ConditionTestJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.permission_access import RecordAccess, permission_route
from sso.admin.request import AdminModel, AdminRequest, AdminResponse, AdminRoute
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.core.net import Address, parse_address
from sso.db.database import Database
from sso.db.transaction import run_pure
from sso.perm.engine.required_rights import Operation
from sso.perm.input.field_types import GroupId, UserName, Word
from sso.perm.input.groups import MAX_CONDITIONS
from sso.perm.input.time_windows import Moment
from sso.perm.operations.condition_matches import count_matches
from sso.perm.operations.condition_test import assumed_facts, facts_json, judge_condition, judge_group
from sso.perm.stores.groups import group_json, read_group
from sso.perm.stores.project_state import FEW_CONDITIONS
from sso.perm.visibility import Visibility
from sso.web.body import SCHEMA_BODY
from sso.web.request_model import JsonObject, RequestModel, at_most

MAX_WORDS = 100
NEEDS_VIEW_USERS = f"user: {AdminRight.VIEW_USERS} is required; give domain, tags and purchases instead"
Words = Annotated[list[Word], Field(max_length=MAX_WORDS)]


class ConditionQuestion(RequestModel):
    """A condition or a group, and the facts to compare with. A fact that is given replaces that of the user."""

    model_config = ConfigDict(extra="forbid")

    condition: JsonObject | None = None
    group_id: GroupId | None = None
    user: UserName | None = None
    address: Annotated[str, at_most(64)] | None = None
    domain: Annotated[str, at_most(255)] | None = None
    tags: Words | None = None
    purchases: Words | None = None
    at: Moment | None = None  # Unix seconds; None: now


class ConditionsQuestion(RequestModel):
    """Conditions of which users meet at least one."""

    model_config = ConfigDict(extra="forbid")

    conditions: Annotated[list[JsonObject], Field(min_length=1, max_length=MAX_CONDITIONS)]


class SuggestionQuery(AdminModel):
    search: Annotated[str, at_most(320)] = ""


class ConditionResource:
    def __init__(self, database: Database, users: UserStore, visibility: Visibility) -> None:
        self._database = database
        self._users = users
        self._groups = RecordAccess(visibility, "group", Operation.GROUP_GET, AdminRight.VIEW_PROJECTS)

    async def test(self, request: AdminRequest) -> AdminResponse:
        """Says whether a condition, or one of the conditions of a group, holds, and which members decide.

        A stored user can be named by callers with `can_view_users`. Nothing is changed.
        """
        body: ConditionQuestion = request.body
        if (body.condition is None) == (body.group_id is None):
            raise ApiError("condition, group_id: exactly one of them is required")
        group = await self._group(request, body.group_id) if body.group_id is not None else None
        user = await self._user(request, body.user)
        address = _address(body.address) if body.address else None
        now = int(self._database.clock.now()) if body.at is None else body.at
        facts = assumed_facts(user, body.domain, body.tags, body.purchases, address)
        if group is not None:
            takes_long = len(group["conditions"]) > FEW_CONDITIONS
            outcome = await run_pure(self._database, takes_long, judge_group, group, facts, now)
        else:
            judged = judge_condition(body.condition, facts, now)
            outcome = {"holds": judged["holds"], "conditions": [judged]}
        return AdminResponse({"data": {**outcome, "user": facts_json(facts)}})

    async def count(self, request: AdminRequest) -> AdminResponse:
        """Says how many users meet at least one of the conditions, and names some of them.

        At most 1,000 users are examined; `exact` is false if more may meet a condition. Nothing is changed.
        """
        body: ConditionsQuestion = request.body
        return AdminResponse({"data": await count_matches(self._database, body.conditions)})

    async def suggest(self, request: AdminRequest) -> AdminResponse:
        """Lists tags, purchases and e-mail domains that users have and that contain a text: common ones, not all."""
        query: SuggestionQuery = request.query
        return AdminResponse({"data": await suggest_attributes(self._database, query.search)})

    async def _group(self, request: AdminRequest, group_id: str) -> dict[str, Any]:
        await self._groups.require(request, group_id)
        row = await read_group(self._database, group_id)
        if row is None:
            raise NotFound("group not found")
        return group_json(row)

    async def _user(self, request: AdminRequest, name: str | None) -> User | None:
        if name is None:
            return None
        if not request.caller.sees_users:
            raise Forbidden(NEEDS_VIEW_USERS)
        user = await self._users.find(name)
        if user is None:
            raise FieldError(("user",), "there is no such user", status=404)
        return user


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError:
        raise FieldError(("address",), "must be an IPv4 or IPv6 address") from None


def condition_routes(conditions: ConditionResource) -> tuple[AdminRoute, ...]:
    return (
        permission_route(
            "POST",
            "/conditions/test",
            AdminRight.VIEW_PROJECTS,
            conditions.test,
            body=ConditionQuestion,
            other_right=AdminRight.VIEW_APPLICATIONS,
            answer=AnswerShape(ConditionTestJson),
            operation="test_condition",
            example={"condition": {"domain": "studio.example"}, "user": "ann@studio.example", "address": "192.0.2.7"},
        ),
        AdminRoute(
            "POST",
            "/conditions/matches",
            AdminRight.VIEW_USERS,
            conditions.count,
            body=ConditionsQuestion,
            body_limit=SCHEMA_BODY,
            answer=AnswerShape(ConditionMatchesJson),
            operation="count_condition_matches",
            example={"conditions": [{"domain": "studio.example"}]},
        ),
        AdminRoute(
            "GET",
            "/conditions/suggestions",
            AdminRight.VIEW_USERS,
            conditions.suggest,
            query=SuggestionQuery,
            answer=AnswerShape(ConditionSuggestionsJson),
            operation="suggest_condition_values",
        ),
    )
