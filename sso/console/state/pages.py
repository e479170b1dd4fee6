"""The state of the service as a document: download it, compare one with the service, and apply it."""

from typing import Any

import orjson
from quart import Blueprint, Response, current_app, request

from sso.admin.request import AdminResponse
from sso.console.form_error import FormError
from sso.console.impact import impact_values
from sso.console.progress_pages import OperationProgress, stream_page
from sso.console.sections import STATE
from sso.console.state.document import MANY_RECORDS, MAX_FORM, digest, read_document, record_changes
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.db.errors import DatabaseError
from sso.state.document import count_records
from sso.state.export import SECTIONS

DIFF, APPLY = "/state/diff", "/state/apply"
NOT_COMPARED = "The document was changed since it was compared. Compare it again, and then apply it."


def state_pages(console: ConsoleView) -> Blueprint:
    routes = console.blueprint(STATE)

    @routes.get("")
    async def show() -> Response:
        return await state_page(await console.open(STATE))

    async def state_page(visit: ConsoleVisit, document: str = "", **context: Any) -> Response:
        return await console.show(
            visit,
            "state/page.html",
            title="State",
            sections=SECTIONS,
            document=document,
            is_root=visit.caller.is_root,
            **context,
        )

    @routes.get("/export.json")
    async def export() -> Response:
        visit = await console.open_export(STATE)
        sections = ",".join(request.args.getlist("sections"))
        try:
            document = await visit.data("GET", "/state", query={"sections": sections})
        except ApiError as error:
            return await state_page(visit, **FormError.of(error).values)
        headers = {"Content-Disposition": 'attachment; filename="sso-state.json"'}
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        return Response(text, 200, headers, content_type="application/json; charset=utf-8")

    @routes.post("/compare")
    async def compare() -> Response:
        """Shows what the document would change, and for those who may apply documents who gains and loses what."""
        visit, form = await console.submitted(STATE, "POST", DIFF, recent="never", max_bytes=MAX_FORM)
        text = form.get("document", "")
        try:
            found = await _compare(visit, await read_document(text))
        except ApiError as error:
            return await state_page(visit, text, **FormError.of(error).values)
        return await state_page(
            visit,
            text,
            comparison=found.members["data"],
            changes=record_changes(found.members),
            warnings=found.members.get("warnings", ()),
            **await impact_values(visit, found.members),
            compared=digest(text),
        )

    @routes.post("/apply")
    async def apply() -> Response:
        visit, form = await console.submitted(STATE, "POST", APPLY, max_bytes=MAX_FORM)
        text = form.get("document", "")
        if form.get("compared") != digest(text):
            return await state_page(visit, text, **FormError(NOT_COMPARED, 409, "document").values)
        try:
            body = await read_document(text) | ({"override": True} if "override" in form else {})
            if count_records(body) >= MANY_RECORDS:
                return await apply_in_parts(visit, body)
            applied = await visit.call("POST", APPLY, body=body)
        except ApiError as error:
            return await state_page(visit, text, **FormError.of(error).values)
        return await state_page(visit, notice=_notice(applied), warnings=applied.members["warnings"])

    async def apply_in_parts(visit: ConsoleVisit, body: dict[str, Any]) -> Response:
        """Shows how many records are stored. The response has begun then, so that an error has no status of its own."""
        page = await console.show(visit, "state/progress.html", title="Applying the document", notice=None)
        ending = current_app.jinja_env.get_template("console/state/_applied.html")

        async def operation(progress: OperationProgress) -> str:
            try:
                applied = await visit.call("POST", APPLY, body=body, progress=progress.show)
            except ApiError as error:
                return ending.render(error=FormError.of(error).values["problem_summary"])
            except DatabaseError:
                return ending.render(error="The database does not answer. Please try again later.")
            return ending.render(notice=_notice(applied), warnings=applied.members["warnings"])

        headers = {name: page.headers[name] for name in ("Content-Language", "Content-Security-Policy")}
        return stream_page(await page.get_data(as_text=True), headers, operation)

    return routes


def _notice(applied: AdminResponse) -> str:
    counts = applied.members["data"]
    return (
        f"The document has been applied: {counts['created']} records created, {counts['changed']} changed, "
        f"{counts['unchanged']} as they were."
    )


async def _compare(visit: ConsoleVisit, document: dict[str, Any]) -> AdminResponse:
    if visit.may("POST", APPLY):
        return await visit.call("POST", APPLY, query={"dry_run": "1"}, body=document)
    return await visit.call("POST", DIFF, body=document)
