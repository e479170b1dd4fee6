"""POST /api/permissions/check: whether users have rules, up to 100 questions in one request."""

from typing import Any

import orjson

from sso.perm.input.questions import read_check_options, read_questions
from sso.perm.operations.checks import CheckAnswer, CheckOperations
from sso.perm.request import PermissionRequest


class CheckEndpoint:
    def __init__(self, checks: CheckOperations) -> None:
        self._checks = checks

    async def check(self, request: PermissionRequest) -> bytes:
        caller = request.caller
        with_reason, warnings = read_check_options(request.fields.get("options", {}))
        default_application = request.fields.get("application_id")
        questions, more = read_questions(
            request.required_data(), caller.user_id, default_application, with_reason=with_reason
        )
        request.warnings.extend((*warnings, *more))
        answers = await self._checks.answer(caller, questions, request.facts)
        return orjson.dumps(request.response(data=[answer_json(answer) for answer in answers]))


def answer_json(answer: CheckAnswer) -> dict[str, Any]:
    if answer.error is not None:
        return {"allow": False, "error": str(answer.error.message)}
    return (
        {"allow": answer.is_allowed} if answer.reason is None else {"allow": answer.is_allowed, "reason": answer.reason}
    )
