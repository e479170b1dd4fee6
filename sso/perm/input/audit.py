"""The filter of an audit request."""

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, ConfigDict

from sso.perm.input.field_types import ApplicationId, Number, Segment
from sso.perm.input.model import InputModel, read_record
from sso.web.request_model import at_most

MAX_PAGE = 200
MAX_TIMESTAMP = 253402300799  # the end of the year 9999, the last that the database can convert


def _check_page_size(value: int) -> int:
    if not 0 < value <= MAX_PAGE:
        raise ValueError(f"must be 1 to {MAX_PAGE}")
    return value


_Text: TypeAlias = Annotated[str, at_most(128)]
_Timestamp: TypeAlias = Annotated[Number, AfterValidator(lambda seconds: min(seconds, MAX_TIMESTAMP))]


class AuditFilterFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    project_id: Segment = ""  # or an alias
    application_id: ApplicationId = 0
    user_id: _Text = ""
    operation: _Text = ""
    target: _Text = ""
    since: _Timestamp = 0
    until: _Timestamp = 0
    before_id: Number = 0
    most: Annotated[Number, AfterValidator(_check_page_size)] = 50


FIELDS = frozenset(AuditFilterFields.model_fields)


def read_audit_filter(data: object) -> dict[str, Any]:
    """The fields of the filter that were given."""
    fields, _ = read_record(AuditFilterFields, data, ("data",))
    return fields
