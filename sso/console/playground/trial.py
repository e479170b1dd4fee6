"""Asks a document of desired state a question, with the engine of the service. Only what the document has exists."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct, field

from sso.console.explorer.query import read_moment
from sso.core.field_errors import FieldError
from sso.perm.changes.impact import FailedAssertion
from sso.perm.changes.offline_state import OfflineState
from sso.perm.engine.explanation.text import ExplanationLine, explanation_lines
from sso.state.document import Document, parse
from sso.state.offline import build_state, check_document
from sso.state.position import Position, find_position
from sso.web.body import BodyLimit, InvalidBody, parse_body

DOCUMENT_LIMIT = BodyLimit(64 * 1024, 4_000)
MAX_PEOPLE = 200
MAX_RULE = 200  # letters
# Reasons of an answer, and the people whose reasons are shown if the question is about everybody: pages stay small.
MAX_REASONS, MAX_EXPLAINED = 30, 20
MAX_ROLES = 200


class DocumentQuestion(Struct, frozen=True):
    """The fields of the form, as they were written."""

    user: str = ""
    application_id: str = ""
    rule: str = ""
    at: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "DocumentQuestion":
        return cls(**{name: fields.get(name, "").strip() for name in cls.__struct_fields__})

    @property
    def is_asked(self) -> bool:
        return bool(self.rule)


class PersonAnswer(NamedTuple):
    login: str
    allowed: bool
    reasons: list[ExplanationLine]


class AssertionAnswer(NamedTuple):
    failure: FailedAssertion
    position: Position


class Trial(Struct, frozen=True):
    """What the document says."""

    people: list[str] = field(default_factory=list)
    applications: list[tuple[str, str]] = field(default_factory=list)  # ids and names
    roles: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    answers: list[PersonAnswer] = field(default_factory=list)
    assertions: int = 0
    failed: list[AssertionAnswer] = field(default_factory=list)


def read_fields(text: str) -> dict[str, Any]:
    """Returns the document as JSON. Raises FieldError for the field `document` with line and column."""
    try:
        return dict(parse_body(text.encode(), "application/json", forms=False, **DOCUMENT_LIMIT._asdict()).fields)
    except InvalidBody as error:
        raise FieldError(("document",), error.problem) from None


def try_document(text: str, question: DocumentQuestion, now: int) -> Trial:
    """Raises FieldError that names the field of the form, and for the document the line and column."""
    asked = read_moment(question.at, "at")
    moment = now if asked is None else asked
    document = _parse(text)
    try:
        state, report = build_state(document), check_document(document, moment)
    except FieldError as error:
        raise _located(text, error) from None
    application_ids = [key for key in sorted(state.state.applications) if key in document.application_ids]
    names = {part.id: part.fields.get("name", "") for part in document.applications}
    compiled = [state.state.compiled[key] for key in application_ids]
    return Trial(
        people=[user.login for user in document.users],
        applications=[(str(key), names.get(key) or str(key)) for key in application_ids],
        roles=sorted({name for application in compiled for name in application.roles}),
        rules=sorted({name for item in compiled for name in (*item.private_names, *item.public_names)}),
        answers=_answers(state, document, question, application_ids, moment) if question.is_asked else [],
        assertions=report.checked,
        failed=[AssertionAnswer(item, find_position(text, location)) for location, item in report.failed],
    )


def _parse(text: str) -> Document:
    try:
        document = parse(read_fields(text))
    except FieldError as error:
        raise error if error.path == ("document",) else _located(text, error) from None
    if len(document.users) > MAX_PEOPLE:
        raise FieldError(("document",), f"users: expected at most {MAX_PEOPLE}")
    if sum(len(part.roles) for part in document.schemas) > MAX_ROLES:
        raise FieldError(("document",), f"roles: expected at most {MAX_ROLES}")
    return document


def _located(text: str, error: FieldError) -> FieldError:
    line, column = find_position(text, error.path)
    return FieldError(("document",), f"line {line}, column {column}: {error}")


def _answers(
    state: OfflineState, document: Document, question: DocumentQuestion, application_ids: list[int], now: int
) -> list[PersonAnswer]:
    """Returns the answer for one user, or for every user of the document."""
    application_id = _application(question, application_ids)
    if len(question.rule) > MAX_RULE:
        raise FieldError(("rule",), f"expected at most {MAX_RULE} letters")
    known = [user.login for user in document.users]
    if question.user and question.user not in known:
        raise FieldError(("user",), f"there is no user {question.user[:100]} in the document")
    answers = []
    for number, login in enumerate([question.user] if question.user else known):
        explanation = state.explain(application_id, state.find_user(login), question.rule, now)
        lines = islice(explanation_lines(explanation), MAX_REASONS) if number < MAX_EXPLAINED else ()
        answers.append(PersonAnswer(login, explanation["held"], list(lines)))
    return answers


def _application(question: DocumentQuestion, known: list[int]) -> int:
    if not question.application_id and len(known) == 1:
        return known[0]
    by_text = {str(application_id): application_id for application_id in known}
    if question.application_id not in by_text:
        raise FieldError(("application_id",), f"expected one of {', '.join(by_text) or 'the applications'}")
    return by_text[question.application_id]
