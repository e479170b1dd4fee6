"""The answers of a replica: those that the service gives to a service client of the application.

A request is read first. Then what the copy lacks is asked for: users who are new, and the ids of users who are named by
their logins. Then it is answered without input or output.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sso.core.errors import ApiError, Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.perm.authorization import CallerRights
from sso.perm.authzen.endpoint import decisions_json
from sso.perm.authzen.evaluations import Evaluation, EvaluationRequest, read_evaluation, read_evaluations
from sso.perm.caller import Caller
from sso.perm.endpoints.checks import answer_json
from sso.perm.engine.effective_permissions import no_permissions
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import Rights
from sso.perm.input.questions import Question, read_check_options, read_questions
from sso.perm.input.validators import read_object
from sso.perm.operations.checks import CheckAnswer, Reasons, answer_question
from sso.perm.replica.copy import ReplicaCopy

CHECK, EVALUATION, EVALUATIONS = "/api/permissions/check", "/access/v1/evaluation", "/access/v1/evaluations"


class PastNotKept(ApiError):
    message = "context.at: a replica does not know the past; ask the service"


class ReplicaRequest(Struct, frozen=True):
    """A request at one of the three paths: ``evaluations`` is None for a check."""

    application_id: int
    questions: tuple[Question, ...]
    evaluations: EvaluationRequest | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str, fields: dict[str, Any], application_id: int) -> "ReplicaRequest":
        """Raises ApiError."""
        if path == CHECK:
            return _read_check(fields, application_id)
        request = read_evaluation(fields) if path == EVALUATION else read_evaluations(fields)
        return cls(application_id, tuple(request.questions), request)

    @property
    def logins(self) -> set[str]:
        """The logins of subjects that are not named by their ids."""
        items = self.evaluations.evaluations if self.evaluations else ()
        return {item.login for item in items if item.question is not None and item.login}

    @property
    def user_ids(self) -> set[str]:
        return {question.user_id for question in self.questions if question.user_id and self._refusal(question) is None}

    def with_logins(self, found: Mapping[str, str | ApiError]) -> "ReplicaRequest":
        """Returns the request with the users who have these logins, or the error for a login."""
        if self.evaluations is None or not found:
            return self
        items = tuple(_with_user(item, found) for item in self.evaluations.evaluations)
        evaluations = replace(self.evaluations, evaluations=items)
        return replace(self, questions=tuple(evaluations.questions), evaluations=evaluations)

    def answer(self, copy: ReplicaCopy, now: int, errors: Mapping[str, ApiError] | None = None) -> dict[str, Any]:
        """Returns the response. ``errors`` has users of whom the copy does not know whether they exist."""
        if self.evaluations is None:
            data = [answer_json(answer) for answer in self._answers(copy, now, errors or {})]
            return {"status": "OK", "data": data, **({"warnings": self.warnings} if self.warnings else {})}
        answers = self._answers(copy, now, errors or {})
        return decisions_json(self.evaluations, list(self.evaluations.evaluations), answers)

    def _answers(self, copy: ReplicaCopy, now: int, errors: Mapping[str, ApiError]) -> Iterator[CheckAnswer]:
        caller = Caller("", None, self.application_id, now=now)
        rights = CallerRights(Rights(no_permissions(CENTRAL_APPLICATION_ID, now), service=True), copy.load(""))
        reasons = Reasons()
        for question in self.questions:
            refusal = self._refusal(question)
            user = errors.get(question.user_id) or copy.load(question.user_id, exact=question.with_reason)
            yield answer_question(caller, question, refusal or rights, user, reasons)

    def _refusal(self, question: Question) -> ApiError | None:
        if question.application_id != self.application_id:
            return Forbidden(f"this replica answers for application {self.application_id} only")
        return PastNotKept() if question.at is not None else None


def _read_check(fields: dict[str, Any], application_id: int) -> ReplicaRequest:
    with_reason, warnings = read_check_options(fields.get("options", {}))
    if "data" not in fields:
        raise FieldError(("data",), "is required")
    data, default = read_object(fields["data"], ("data",)), fields.get("application_id", application_id)
    questions, more = read_questions(data, "", default, with_reason=with_reason)
    return ReplicaRequest(application_id, tuple(questions), warnings=(*warnings, *more))


def _with_user(evaluation: Evaluation, found: Mapping[str, str | ApiError]) -> Evaluation:
    if evaluation.question is None or not evaluation.login:
        return evaluation
    user = found.get(evaluation.login) or NotFound("user not found")
    if isinstance(user, ApiError):
        return Evaluation(None, error=user)
    return replace(evaluation, question=replace(evaluation.question, user_id=user), login="")
