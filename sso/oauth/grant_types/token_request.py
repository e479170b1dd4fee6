"""The body of a request to the token endpoint."""

from typing import Annotated, ClassVar

from pydantic import Field

from sso.core.jwt import MAX_TOKEN
from sso.oauth.errors import InvalidRequest
from sso.web.request_model import RequestModel, Strings, WholeNumber, at_most

# A JWT access token that names several resources is longer than other fields.
PresentedToken = Annotated[str, at_most(MAX_TOKEN)]


class TokenRequest(RequestModel):
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    refresh_token: str = ""
    code_verifier: str = ""
    scope: str = ""
    device_code: str = ""
    wait: Annotated[WholeNumber, Field(ge=0)] = 0  # seconds for which the request of a device may be held
    client_id: str = ""
    client_secret: str = ""
    client_assertion_type: str = ""
    client_assertion: str = ""
    resource: Strings = Field(default_factory=list)
    audience: Strings = Field(default_factory=list)
    subject_token: PresentedToken = ""
    subject_token_type: str = ""
    requested_token_type: str = ""
    actor_token: str = ""
    repeatable: ClassVar[frozenset[str]] = frozenset({"resource", "audience"})

    def require(self, *names: str) -> None:
        """Raises InvalidRequest if one of the fields is missing or empty."""
        for name in names:
            if not getattr(self, name):
                raise InvalidRequest(f"{name} is required")
