"""Why the management API has refused a form, for people."""

import re
from dataclasses import dataclass

from sso.admin.errors import PreconditionFailed
from sso.core.errors import ApiError
from sso.web.body import InvalidBody

_FIELD = re.compile(r"([a-z][a-z0-9_]*)(?:[.\[][^:]*)?: (.*)", re.DOTALL)
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
        return cls(str(error.message), status, match[1] if match else "")
