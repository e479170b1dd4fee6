"""A user of another service who moves in: the fields of a user, and what only an import can set."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from sso.accounts.user_record import UserRecord
from sso.core.field_errors import FieldError
from sso.core.password_hashes.reading import read_password_hash
from sso.core.records import RecordModel, Text, Word
from sso.perm.input.field_types import ApplicationId
from sso.upstream.linked_identities import MAX_LINKS
from sso.web.request_model import expectation

MAX_ROLES = 100


class ImportedIdentity(RecordModel):
    provider: Word  # the id of an identity provider of this service
    subject: Annotated[str, Field(min_length=1, max_length=255)]  # the id of the user there
    name: Text = ""


class ImportedRole(RecordModel):
    application_id: ApplicationId
    role: Word


class ImportedUser(UserRecord):
    # Of the present password, in one of the forms of sso.core.password_hashes.
    password_hash: Annotated[str, AfterValidator(lambda text: read_password_hash(text).text)] | None = None
    identities: Annotated[list[ImportedIdentity], Field(max_length=MAX_LINKS)] = Field(default_factory=list)
    roles: Annotated[list[ImportedRole], Field(max_length=MAX_ROLES)] = Field(default_factory=list)


def read_imported_user(value: Any) -> ImportedUser:
    """Raises FieldError, whose text has no secret."""
    try:
        user = ImportedUser.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        problem = "unknown field" if first["type"] == "extra_forbidden" else expectation(first)
        raise FieldError(first["loc"], problem) from None
    if user.password is not None and user.password_hash is not None:
        raise FieldError(("password",), "a user has a password or a password_hash, not both")
    return user
