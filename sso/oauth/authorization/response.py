"""The answers to an authorization request, which the browser carries to the client."""

from collections.abc import Mapping
from dataclasses import dataclass

from sso.db.errors import DatabaseError
from sso.oauth.authorization.request import Parameters, as_form_text, error_response_mode
from sso.oauth.clients.redirect_uris import Redirect
from sso.oauth.errors import AuthorizationError
from sso.oauth.model import AuthorizationRequest, Client, ResponseMode


@dataclass(frozen=True)
class RedirectTo:
    """Redirect the browser to the client."""

    url: str


@dataclass(frozen=True)
class PostForm:
    """Show a page whose form posts the answer to the client (OAuth 2.0 Form Post Response Mode)."""

    client: Client
    redirect: Redirect
    fields: Mapping[str, str]


Answer = RedirectTo | PostForm
Failure = AuthorizationError | DatabaseError


class AuthorizationResponses:
    """A client of several issuers tells their answers apart by ``iss`` (RFC 9207), which strict clients do not get."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def with_code(self, request: AuthorizationRequest, code: str) -> Answer:
        return self._answer(request.client, request.redirect, request.response_mode, code=code, state=request.state)

    def with_error(self, request: AuthorizationRequest, error: Failure) -> Answer:
        parameters = _error_parameters(error)
        return self._answer(request.client, request.redirect, request.response_mode, **parameters, state=request.state)

    def with_error_of_parameters(
        self, client: Client, redirect: Redirect, parameters: Parameters, error: Failure
    ) -> Answer:
        """Returns the answer to a request that may be invalid."""
        mode, state = error_response_mode(parameters, client), parameters.single_value("state")
        return self._answer(client, redirect, mode, **_error_parameters(error), state=state)

    def _answer(
        self, client: Client, redirect: Redirect, mode: ResponseMode, **parameters: str | bytes | None
    ) -> Answer:
        if client.rules.is_standard:
            parameters["iss"] = self._issuer
        if mode == "query":
            return RedirectTo(redirect.with_parameters(**parameters))
        texts = {name: as_form_text(value) if isinstance(value, bytes) else value for name, value in parameters.items()}
        return PostForm(client, redirect, {name: text for name, text in texts.items() if text is not None})


def _error_parameters(error: Failure) -> dict[str, str]:
    if isinstance(error, DatabaseError):
        error = AuthorizationError("server_error", "the service is temporarily unavailable, try again")
    return {"error": error.error, "error_description": error.description}
