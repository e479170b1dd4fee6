"""Who may do this: the users who have a rule, with the reasons, page by page; and their export."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from quart import Blueprint, Response, request

from sso.console.explorer.application_field import application_choices, application_name, find_application
from sso.console.explorer.permissions import CannotExplore, rule_extra
from sso.console.explorer.query import AddressQuery, moment_text, read_moment
from sso.console.explorer.reasons import ReasonLine, ReasonPages
from sso.console.form_error import FormError
from sso.console.lists import exported_pages
from sso.console.sections import EXPLORER
from sso.console.view import ConsoleView
from sso.console.visit import ConsoleVisit
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.web.csv_response import streamed_csv_response
from sso.web.redirects import see_other

WHO = "/applications/<application_id>/who"
PAGE = f"{EXPLORER.path}/who"
PAGE_SIZE = "50"
COLUMNS = ("user_id", "extra", "reasons")


class WhoQuestion(AddressQuery, frozen=True):
    """``application_id``: an id or a name; ``at``: empty for now; ``after``: the user after whom the page begins."""

    rule: str = ""
    application_id: str = ""
    project_id: str = ""
    at: str = ""
    after: str = ""

    def api_query(self) -> dict[str, str]:
        """Returns the query of the management API. Raises CannotExplore."""
        try:
            moment = read_moment(self.at, "at")
        except FieldError as error:
            raise CannotExplore(FormError.of(error)) from None
        at = "" if moment is None else str(moment)
        return {"rule": self.rule, "project_id": self.project_id, "at": at, "reason": "1", "after": self.after}


class RuleHolder(Struct, frozen=True):
    user_id: str
    extra: str  # parameters and end of the rule, as a text
    reasons: tuple[ReasonLine, ...]


class FoundHolders(Struct, frozen=True):
    application_id: str
    holders: list[RuleHolder]
    next: str | None


def add_who_pages(console: ConsoleView, routes: Blueprint) -> None:
    @routes.get("/who")
    async def who() -> Response:
        visit = await console.open(EXPLORER)
        question = WhoQuestion.of(request.args)
        found, error = None, None
        if question.rule:
            try:
                found = await find_holders(visit, question)
            except CannotExplore as refused:
                error = refused.error
        return await console.show(
            visit,
            "explorer/who.html",
            title="Who may do this?",
            query=question,
            found=found,
            moment=moment_text(read_moment_or_now(question.at)),
            applications=await application_choices(visit),
            application_name=await application_name(visit, found.application_id) if found else "",
            names=await visit.names({"user": [one.user_id for one in found.holders] if found else []}),
            **(error.values if error else {}),
        )

    @routes.get("/who.csv")
    async def export_holders() -> Response:
        visit = await console.open_export(EXPLORER)
        question = replace(WhoQuestion.of(request.args), after="")
        try:
            application_id = await find_application(visit, question.application_id)
            query = question.api_query()
        except CannotExplore:
            return see_other(f"{PAGE}?{question.address()}")  # the page says what is wrong
        if not question.rule:
            return see_other(PAGE)
        pages = exported_pages(visit, WHO, query, application_id=application_id)
        return await streamed_csv_response("who", COLUMNS, pages, lambda record: _cells(visit, application_id, record))


async def find_holders(visit: ConsoleVisit, question: WhoQuestion) -> FoundHolders:
    """Raises CannotExplore."""
    application_id = await find_application(visit, question.application_id)
    query = {**question.api_query(), "limit": PAGE_SIZE}
    try:
        answer = await visit.call("GET", WHO, query=query, application_id=application_id)
    except ApiError as error:
        raise CannotExplore(FormError.of(error)) from None
    holders = [_holder(visit, application_id, record) for record in answer.members["data"]]
    return FoundHolders(application_id, holders, answer.members["next"])


def read_moment_or_now(text: str) -> int | None:
    try:
        return read_moment(text, "at")
    except FieldError:
        return None


def _holder(visit: ConsoleVisit, application_id: str, record: dict[str, Any]) -> RuleHolder:
    pages = ReasonPages.of(visit, application_id, record["user_id"])
    return RuleHolder(record["user_id"], rule_extra(record["reason"]), pages.lines(record["reason"]))


def _cells(visit: ConsoleVisit, application_id: str, record: dict[str, Any]) -> dict[str, str]:
    holder = _holder(visit, application_id, record)
    reasons = "; ".join(line.text for line in holder.reasons)
    return {"user_id": holder.user_id, "extra": holder.extra, "reasons": reasons}
