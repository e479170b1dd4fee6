"""/api/admin/applications/{application_id}/assertions: statements that every save is checked against."""

from typing import Annotated

from pydantic import Field

from sso.admin.answers.permissions import AssertionReportJson, AssertionsJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.caller import AdminCaller
from sso.admin.permission_access import AT_CENTRAL_APPLICATION
from sso.admin.request import AdminRequest, AdminResponse, AdminRoute, JsonRecord, WriteQuery, record_response
from sso.admin.rights import AdminRight
from sso.core.errors import Forbidden, NotFound
from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.transaction import Transaction
from sso.perm.changes.assertion_check import AssertionFailed
from sso.perm.changes.assertion_report import check_assertions
from sso.perm.changes.scope import Scope
from sso.perm.changes.writer import EVALUATION_S, PermissionWriter, WriteMode
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, is_application_key
from sso.perm.input.assertions import read_assertions as read_statements
from sso.perm.stores.applications import refuse_removed_application
from sso.perm.stores.assertions import read_assertions, save_assertions
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.locks import lock_application
from sso.web.request_model import RequestModel

OPERATOR_S = 600.0  # for `sso perm test`, which may take long with many users


class AssertionsBody(RequestModel):
    assertions: list[str] = Field(description="LOGIN may RULE, LOGIN may not RULE, only ROLE may RULE")
    override: bool = False


class AssertionQuestion(RequestModel):
    application_id: Annotated[int, Field(ge=1, le=MAX_APPLICATION_ID)] | None = None  # None: all applications


class AssertionResource:
    def __init__(self, database: Database, writer: PermissionWriter, facts: StoredFacts) -> None:
        self._database = database
        self._writer = writer
        self._facts = facts

    async def get(self, request: AdminRequest) -> AdminResponse:
        application_id = _read_application_id(request)
        _require_root_for_central(request.caller, application_id)
        return record_response(_json(application_id, await self._require(application_id)))

    async def save(self, request: AdminRequest) -> AdminResponse:
        """Replaces the assertions. One that fails at present is refused unless ``override`` is true."""
        body: AssertionsBody = request.body
        application_id = _read_application_id(request)
        _require_root_for_central(request.caller, application_id)
        statements = read_statements(body.assertions)
        await self._require(application_id)

        async def work(tx: Transaction) -> None:
            row = await lock_application(tx, application_id)
            request.check_version(_json(application_id, row["assertions"]))
            await refuse_removed_application(tx, row)
            await save_assertions(tx, request.caller.actor, row, statements)

        query: WriteQuery = request.query
        mode = WriteMode(query.dry_run, body.override, request.caller.actor)
        sees_users = request.caller.sees_users
        try:
            written = await self._writer.write(mode, Scope.application(application_id), work)
        except AssertionFailed as error:
            raise (error if sees_users else error.without_users()) from None
        if query.dry_run:
            return AdminResponse((written.impact if sees_users else written.impact.without_violators()).json())
        response = record_response(_json(application_id, statements))
        warnings = list(written.warnings)
        return AdminResponse(response.members | ({"warnings": warnings} if warnings else {}), 200, response.headers)

    async def test(self, request: AdminRequest) -> AdminResponse:
        """Checks the assertions of all applications, or of one, with all users whom they concern.

        Those of the central application are checked for root alone.
        """
        question: AssertionQuestion = request.body
        caller, application_id = request.caller, question.application_id
        if application_id is not None:
            _require_root_for_central(caller, application_id)
            await self._require(application_id)

        def is_included(key: int) -> bool:
            return caller.is_root or key != CENTRAL_APPLICATION_ID

        now = int(self._database.clock.now())
        with self._database.shares.limit_evaluation("assertions"):
            report = await self._database.long_transaction(
                OPERATOR_S if caller.actor.operator else EVALUATION_S,
                check_assertions,
                self._facts,
                now,
                application_id,
                is_included,
            )
        return AdminResponse({"data": (report if caller.sees_users else report.without_users()).json})

    async def _require(self, application_id: int) -> list[str]:
        statements = await read_assertions(self._database, application_id)
        if statements is None:
            raise NotFound("application not found")
        return statements


def assertion_routes(database: Database, writer: PermissionWriter, facts: StoredFacts) -> tuple[AdminRoute, ...]:
    resource = AssertionResource(database, writer, facts)
    path = "/applications/<application_id>/assertions"
    return (
        AdminRoute("GET", path, AdminRight.VIEW_APPLICATIONS, resource.get, answer=AnswerShape(AssertionsJson)),
        AdminRoute(
            "PUT",
            path,
            AdminRight.MANAGE_APPLICATIONS,
            resource.save,
            WriteQuery,
            AssertionsBody,
            answer=AnswerShape(AssertionsJson),
            example={"assertions": ["ann@example.com may chat.kick", "only moderator may chat.mute"]},
        ),
        AdminRoute(
            "POST",
            "/assertions/test",
            AdminRight.VIEW_APPLICATIONS,
            resource.test,
            body=AssertionQuestion,
            answer=AnswerShape(AssertionReportJson),
            operation="test_assertions",
            example={"application_id": 10},
        ),
    )


def _read_application_id(request: AdminRequest) -> int:
    key = request.path["application_id"]
    if not is_application_key(key):
        raise NotFound("application not found")
    return int(key)


def _require_root_for_central(caller: AdminCaller, application_id: int) -> None:
    if application_id == CENTRAL_APPLICATION_ID and not caller.is_root:
        raise Forbidden(AT_CENTRAL_APPLICATION)


def _json(application_id: int, statements: list[str]) -> JsonRecord:
    return {"application_id": application_id, "assertions": statements}
