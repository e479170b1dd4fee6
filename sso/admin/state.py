"""/api/admin/state: exports the state of the service, and compares and applies documents of desired state."""

from functools import partial
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import Field

from sso.accounts.user_directory_store import count_users
from sso.admin.answers.service import AppliedDocumentJson, StateDocumentJson
from sso.admin.answers.shape import AnswerShape
from sso.admin.request import (
    AdminModel,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    JsonRecord,
    WriteQuery,
    record_response,
)
from sso.admin.rights import AdminRight
from sso.core.errors import ApiError, Conflict, Forbidden
from sso.core.field_errors import FieldError
from sso.core.passwords import Hasher
from sso.db.database import Database
from sso.db.transaction import Runner, Transaction, run_pure
from sso.perm.changes.writer import PermissionWriter, WriteMode
from sso.perm.stores.compilation import is_large_json
from sso.state.apply import APPLY_SECONDS, Applier, ApplyPrecondition, ApplyReport, RecordOperations
from sso.state.document import Document, count_records, parse
from sso.state.export import SECTIONS, export, export_in
from sso.web.body import BodyLimit
from sso.web.request_model import QueryFlag, at_most

# While a document is compared, writers of the records that it names wait. Only root may make them wait for long.
MAX_COMPARED_RECORDS, COMPARE_S = 500, 10.0
MAX_EXPORTED_USERS = 10_000  # building a larger document would delay all requests of the worker
DOCUMENT_BODY = BodyLimit(4 * 1024 * 1024, 200_000)
SECRETS = ("password", "totp_secret", "client_secret")


class ExportQuery(AdminModel):
    sections: Annotated[str, at_most(256)] | None = None  # separated by commas


class ApplyQuery(WriteQuery):
    override: QueryFlag = False  # as in the body


class DesiredState(AdminModel):
    """A document of `sso apply`. The sections are read by ``sso/state``."""

    users: list[Any] = Field(default_factory=list)
    clients: list[Any] = Field(default_factory=list)
    identity_providers: list[Any] = Field(default_factory=list)
    applications: list[Any] = Field(default_factory=list)
    schemas: dict[str, Any] = Field(default_factory=dict)
    roles: dict[str, Any] = Field(default_factory=dict)
    projects: list[Any] = Field(default_factory=list)
    permissions: list[Any] = Field(default_factory=list)
    groups: list[Any] = Field(default_factory=list)
    memberships: list[Any] = Field(default_factory=list)
    access_keys: list[Any] = Field(default_factory=list)


class DesiredStateToApply(DesiredState):
    override: bool = False  # apply it although an assertion of an application fails


class StateResource:
    def __init__(
        self,
        database: Database,
        hasher: Hasher,
        operations: RecordOperations,
        writer: PermissionWriter,
    ) -> None:
        self._database = database
        self._hasher = hasher
        self._operations = operations
        self._writer = writer

    async def export(self, request: AdminRequest) -> AdminResponse:
        """Returns the document that `sso export` prints, without secrets."""
        query: ExportQuery = request.query
        return record_response(await self._export(request, _read_sections(query.sections)))

    async def diff(self, request: AdminRequest) -> AdminResponse:
        """Returns what applying the document would change, record by record. Nothing is changed."""
        report = await self._run(request, WriteMode(dry_run=True, actor=request.caller.actor))
        return AdminResponse({"data": _counts(report) | _changes(report), "warnings": list(report.counts.warnings)})

    async def apply(self, request: AdminRequest) -> AdminResponse:
        """Applies the document as a whole or not at all. A dry run says who would gain and lose which permissions."""
        query: ApplyQuery = request.query
        body: DesiredStateToApply = request.body
        if not query.dry_run and not request.caller.is_root:
            raise Forbidden("the role root is required to apply a document; with dry_run=1 you can try it out")
        mode = WriteMode(query.dry_run, query.override or body.override, request.caller.actor)
        report = await self._run(request, mode, None if request.if_match is None else partial(self._check, request))
        if query.dry_run:
            impact = {name: value for name, value in report.json.items() if name != "changes"}
            return AdminResponse(impact | {"data": _counts(report) | _changes(report)})
        return AdminResponse({"data": _counts(report), "warnings": list(report.counts.warnings)})

    async def _check(self, request: AdminRequest, tx: Transaction) -> None:
        """Raises PreconditionFailed if the state is not the one that the caller has read."""
        await _refuse_many_users(tx)
        request.check_version(await export_in(tx))

    async def _run(
        self, request: AdminRequest, mode: WriteMode, precondition: ApplyPrecondition | None = None
    ) -> ApplyReport:
        """Raises FieldError if the document is not valid."""
        caller = request.caller
        seconds = APPLY_SECONDS if caller.is_root else COMPARE_S
        applier = Applier(self._database, self._hasher, self._operations, caller.actor, self._writer, seconds)
        sections = request.body.model_dump(exclude_unset=True, exclude={"override"})
        if not caller.is_root and count_records(sections) > MAX_COMPARED_RECORDS:
            raise ApiError(f"the document: expected at most {MAX_COMPARED_RECORDS} records, or the role root")
        document = await run_pure(self._database, is_large_json(sections), parse, sections)
        if not caller.is_root:
            _refuse_secrets(document)
        return await applier.run(document, mode, request.progress, precondition)

    async def _export(self, request: AdminRequest, sections: tuple[str, ...]) -> JsonRecord:
        # A command of the operator exports in its own process.
        if {"users", "permissions", "memberships"} & {*sections} and not request.caller.actor.operator:
            await _refuse_many_users(self._database)
        return await export(self._database, sections, request.caller.actor)


async def _refuse_many_users(runner: Runner) -> None:
    if await count_users(runner, MAX_EXPORTED_USERS + 1) > MAX_EXPORTED_USERS:
        raise Conflict(
            f"there are more than {MAX_EXPORTED_USERS} users: use `sso export`, or leave out users, "
            "permissions and memberships with the parameter sections"
        )


def _read_sections(text: str | None) -> tuple[str, ...]:
    if text is None:
        return SECTIONS
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in SECTIONS:
            raise FieldError(("sections",), f"expected names among {', '.join(SECTIONS)}, separated by commas")
    return names


def _refuse_secrets(document: Document) -> None:
    """Trying out a secret tells whether it is the present one, without the limits and records of a login."""
    records = (*document.users, *document.clients, *document.identity_providers)
    has_secret = (
        any(getattr(record, name, None) is not None for record in records for name in SECRETS)
        or any((part.fields.get("service_meta") or {}).get("private_key") for part in document.applications)
        or bool(document.access_keys)
    )
    if has_secret:
        raise Forbidden("the role root is required for documents with passwords, secrets or access keys")


def _counts(report: ApplyReport) -> JsonRecord:
    counts = report.counts
    return {"created": counts.created, "changed": counts.changed, "unchanged": counts.unchanged}


def _changes(report: ApplyReport) -> JsonRecord:
    return {"changes": [difference.json for difference in report.differences]}


def state_routes(resource: StateResource) -> tuple[AdminRoute, ...]:
    example = {"users": [{"login": "ann@example.com", "nick": "Ann"}]}
    exported, applied = AnswerShape(StateDocumentJson), AnswerShape(AppliedDocumentJson)
    counts: dict[str, Any] = {"created": int, "changed": int, "unchanged": int, "records": dict[str, str]}
    return (
        *(
            AdminRoute(
                "GET",
                path,
                AdminRight.VIEW_STATE,
                resource.export,
                ExportQuery,
                answer=exported,
                operation=operation,
                summary="Export the state",
            )
            for path, operation in (("/state", "get_state"), ("/state/export", "export_state"))
        ),
        AdminRoute(
            "POST",
            "/state/diff",
            AdminRight.VIEW_STATE,
            resource.diff,
            body=DesiredState,
            body_limit=DOCUMENT_BODY,
            answer=applied,
            operation="compare_state",
            summary="Compare a document with the state",
            example=example,
        ),
        *(
            AdminRoute(
                "POST",
                path,
                AdminRight.MANAGE_STATE,
                resource.apply,
                ApplyQuery,
                DesiredStateToApply,
                body_limit=DOCUMENT_BODY,
                answer=replace(applied, more=counts),
                operation=operation,
                summary="Apply a document",
                example=example,
            )
            for path, operation in (("/state", "save_state"), ("/state/apply", "apply_state"))
        ),
    )
