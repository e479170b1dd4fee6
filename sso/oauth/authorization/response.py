"""The answers to an authorization request, which the browser carries to the client."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from sso.db.errors import DatabaseError
from sso.oauth.authorization.request import Parameters, as_form_text, error_response_mode
from sso.oauth.clients.redirect_uris import Redirect
from sso.oauth.errors import AuthorizationError
from sso.oauth.model import AuthorizationRequest, Client, ResponseMode


class RedirectTo(Struct, frozen=True):
    """Redirect the browser to the client."""

    url: str


class PostForm(Struct, frozen=True):
    """Show a page whose form posts the answer to the client (OAuth 2.0 Form Post Response Mode)."""

    client: Client
    redirect: Redirect
    fields: Mapping[str, str]


Answer = RedirectTo | PostForm
Failure = AuthorizationError | DatabaseError
# Called with the client, the kind of the answer, its parameters, and what recordings keep of the description.
NoteAnswer = Callable[[str, str, Mapping[str, str | bytes | None], str], None]


class AuthorizationResponses:
    """A client of several issuers tells their answers apart by ``iss`` (RFC 9207), which strict clients do not get."""

    def __init__(self, issuer: str, note_answer: NoteAnswer) -> None:
        self._issuer = issuer
        self._note_answer = note_answer

    def with_code(self, request: AuthorizationRequest, code: str) -> Answer:
        return self._answer(request.client, request.redirect, request.response_mode, "", code=code, state=request.state)

    def with_error(self, request: AuthorizationRequest, error: Failure) -> Answer:
        return self._error(request.client, request.redirect, request.response_mode, error, request.state)

    def with_error_of_parameters(
        self, client: Client, redirect: Redirect, parameters: Parameters, error: Failure
    ) -> Answer:
        """Returns the answer to a request that may be invalid."""
        mode, state = error_response_mode(parameters, client), parameters.single_value("state")
        return self._error(client, redirect, mode, error, state)

    def _error(
        self, client: Client, redirect: Redirect, mode: ResponseMode, error: Failure, state: bytes | None
    ) -> Answer:
        if isinstance(error, DatabaseError):
            error = AuthorizationError("server_error", "the service is temporarily unavailable, try again")
        parameters = {"error": error.error, "error_description": error.description}
        return self._answer(client, redirect, mode, error.recorded_description, **parameters, state=state)

    def _answer(
        self, client: Client, redirect: Redirect, mode: ResponseMode, recorded: str, **parameters: str | bytes | None
    ) -> Answer:
        """``recorded`` is what recordings keep of the description of an error."""
        if client.rules.is_standard:
            parameters["iss"] = self._issuer
        self._note_answer(client.client_id, "form" if mode == "form_post" else "redirect", parameters, recorded)
        if mode == "query":
            return RedirectTo(redirect.with_parameters(**parameters))
        texts = {name: as_form_text(value) if isinstance(value, bytes) else value for name, value in parameters.items()}
        return PostForm(client, redirect, {name: text for name, text in texts.items() if text is not None})
