"""Access keys in requests (§2.6): the comment, and the value that an operator has chosen."""

import re
from typing import Annotated

from pydantic import ConfigDict, PlainValidator, WithJsonSchema

from sso.core.jwt import looks_like_jwt
from sso.perm.input.field_types import ApplicationId
from sso.perm.input.model import InputModel
from sso.web.request_model import at_most

_KEY_VALUE = re.compile(r"[!-~]{32,512}")


def check_key_value(value: object) -> str:
    """Returns the value of a key. Clients send it as a bearer token, where it must not look like a JWT."""
    if not isinstance(value, str) or not _KEY_VALUE.fullmatch(value):
        raise ValueError("must be 32 to 512 printable ASCII characters without spaces")
    if looks_like_jwt(value):
        raise ValueError("must not contain exactly two dots, which would make it look like a JWT")
    return value


KeyValue = Annotated[
    str, PlainValidator(check_key_value), WithJsonSchema({"type": "string", "minLength": 32, "maxLength": 512})
]


class AccessKeyFields(InputModel):
    model_config = ConfigDict(extra="ignore")  # callers warn about unknown fields of the record itself

    comment: Annotated[str, at_most(256)] = ""


class AccessKeyRecord(AccessKeyFields):
    """A key in a document."""

    application_id: ApplicationId
    hash: KeyValue
