"""Types of the fields of input models."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, FailFast, Field, PlainValidator, WithJsonSchema

from sso.core.ids import MAX_APPLICATION_ID
from sso.perm.input.names import (
    MAX_DISPLAY_NAME,
    check_application_id,
    check_application_key,
    check_display_name,
    check_group_id,
    check_segment,
    check_title,
)
from sso.perm.input.params import check_params
from sso.perm.input.tags import check_tag, distinct_tags
from sso.perm.input.validators import (
    MAX_DOMAINS,
    MAX_NUMBER,
    MAX_URL,
    MAX_WORD,
    check_domain,
    check_number,
    check_url,
    check_word,
    unique,
)
from sso.web.request_model import at_most


def _not_empty(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _text(**constraints: int | str) -> WithJsonSchema:
    """The schema in the OpenAPI document: pydantic does not know what a validator of ours accepts."""
    return WithJsonSchema({"type": "string", **constraints})


_APPLICATION_ID = r"^[1-9][0-9]{0,9}$"

Word: TypeAlias = Annotated[str, PlainValidator(check_word), _text(minLength=1, maxLength=MAX_WORD)]
Number: TypeAlias = Annotated[
    int, PlainValidator(check_number), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_NUMBER})
]
Url: TypeAlias = Annotated[str, PlainValidator(check_url), _text(maxLength=MAX_URL)]  # may be empty
RequiredUrl: TypeAlias = Annotated[
    str, PlainValidator(check_url), AfterValidator(_not_empty), _text(minLength=1, maxLength=MAX_URL, format="uri")
]
Domains: TypeAlias = Annotated[
    list[Annotated[str, PlainValidator(check_domain), _text(minLength=1, maxLength=255)]],
    FailFast(),
    Field(max_length=MAX_DOMAINS),
    AfterValidator(unique),
]
Segment: TypeAlias = Annotated[str, PlainValidator(check_segment), _text(pattern="^[A-Za-z0-9_-]{1,64}$")]
Title: TypeAlias = Annotated[str, PlainValidator(check_title), _text(pattern="^[A-Za-z0-9 _]{1,32}$")]
DisplayName: TypeAlias = Annotated[str, PlainValidator(check_display_name), _text(maxLength=MAX_DISPLAY_NAME)]
GroupId: TypeAlias = Annotated[str, PlainValidator(check_group_id), _text(pattern="^[0-9a-f]{24}$")]
ApplicationId: TypeAlias = Annotated[
    int,
    PlainValidator(check_application_id),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_APPLICATION_ID},
                {"type": "string", "pattern": _APPLICATION_ID},
            ]
        }
    ),
]
ApplicationKey: TypeAlias = Annotated[str, PlainValidator(check_application_key), _text(pattern=_APPLICATION_ID)]
UserName: TypeAlias = Annotated[str, at_most(320, at_least=1)]  # a user id or a login
Params: TypeAlias = Annotated[str, PlainValidator(check_params), _text()]
Tags: TypeAlias = Annotated[
    list[Annotated[str, PlainValidator(check_tag), _text(pattern="^[A-Za-z0-9:_]{1,64}$")]],
    FailFast(),
    AfterValidator(distinct_tags),
]
