"""Why the management API has refused a form, for people."""

import re
from dataclasses import dataclass

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.web.body import InvalidBody

_FIELD = re.compile(r"([a-z][a-z0-9_]*)(?:[.\[][^:]*)?: (.*)", re.DOTALL)
_GROUP_CONDITION = re.compile(r"^conditions\[(\d{1,3})\]\.condition[^:]*: ")
_GROUP_ROLE = re.compile(r"^settings\.services\.\d+\.groups\[\d+\]\.role: ")
_RULE = re.compile(r"(?:meta\.)?(?:private|public)_data\.[^:]*: must be an object")
CHANGED = "Someone else has changed this in the meantime. Reload the page to see the current values, then try again."


@dataclass(frozen=True)
class FormError:
    text: str
    status: int = 422
    field: str = ""  # the field that the problem is about; "" if it is about the whole form

    @classmethod
    def of(cls, error: ApiError | InvalidBody) -> "FormError":
        if isinstance(error, PreconditionFailed):
            return cls(CHANGED, 409)
        status = error.status if error.status in (403, 404, 409, 429) else 422
        match = _FIELD.fullmatch(error.message)
        return cls(_readable(error.message), status, match[1] if match else "")


def _readable(message: str) -> str:
    """Replaces paths of the API that the form does not show by what it shows."""
    message = _GROUP_CONDITION.sub(lambda match: f"condition {int(match[1]) + 1}: ", message)
    message = _GROUP_ROLE.sub("role: ", message)
    return f'{message}, such as {{"value": true}}' if _RULE.fullmatch(message) else message
