"""Types of the fields of input models."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, FailFast, Field, PlainValidator

from sso.perm.input.names import check_application_id, check_application_key, check_group_id, check_segment, check_title
from sso.perm.input.params import check_params
from sso.perm.input.tags import check_tag, distinct_tags
from sso.perm.input.validators import MAX_DOMAINS, check_domain, check_number, check_url, check_word, unique


def _not_empty(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


Word: TypeAlias = Annotated[str, PlainValidator(check_word)]
Number: TypeAlias = Annotated[int, PlainValidator(check_number)]
Url: TypeAlias = Annotated[str, PlainValidator(check_url)]  # may be empty
RequiredUrl: TypeAlias = Annotated[str, PlainValidator(check_url), AfterValidator(_not_empty)]
Domains: TypeAlias = Annotated[
    list[Annotated[str, PlainValidator(check_domain)]],
    FailFast(),
    Field(max_length=MAX_DOMAINS),
    AfterValidator(unique),
]
Segment: TypeAlias = Annotated[str, PlainValidator(check_segment)]
Title: TypeAlias = Annotated[str, PlainValidator(check_title)]
GroupId: TypeAlias = Annotated[str, PlainValidator(check_group_id)]
ApplicationId: TypeAlias = Annotated[int, PlainValidator(check_application_id)]
ApplicationKey: TypeAlias = Annotated[str, PlainValidator(check_application_key)]
Params: TypeAlias = Annotated[str, PlainValidator(check_params)]
Tags: TypeAlias = Annotated[list[Annotated[str, PlainValidator(check_tag)]], FailFast(), AfterValidator(distinct_tags)]
