"""The headers of revisions: every answer about permissions states its revision, and a request may demand one."""

from collections.abc import Mapping
from typing import Final

from sso.change_stream.reader import UnknownCursor, parse_cursor
from sso.change_stream.revisions import RevisionNotReached
from sso.core.field_errors import FieldError
from sso.web.api_description import ApiParameter
from sso.web.request import current_request

STATED: Final = "Permission-Revision"
DEMANDED: Final = "At-Least-Revision"
DEMAND = ApiParameter(
    DEMANDED,
    f"A cursor of the change stream, or the {STATED} of an earlier response. The answer is at least as new; 503 if it "
    "is not within 5 seconds.",
    "header",
)
STATEMENT = {STATED: "the cursor of the change stream up to which the answer contains every change"}


def demanded_revision() -> int:
    """Returns the revision that the current request demands, 0 for any. Raises FieldError."""
    values = current_request().headers.getlist(DEMANDED)
    if not values:
        return 0
    try:
        if len(values) == 1:
            return parse_cursor(values[0])
    except UnknownCursor:
        pass
    raise FieldError((DEMANDED,), f"must be the {STATED} of an earlier response, or a cursor of the change stream")


def revision_headers(revision: int | None, demanded: int = 0) -> Mapping[str, str]:
    """Raises RevisionNotReached for an answer that is too old, because another database server has taken over."""
    if (revision or 0) < demanded:
        raise RevisionNotReached
    return {} if revision is None else {STATED: str(revision)}
