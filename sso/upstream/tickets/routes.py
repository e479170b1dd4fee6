"""POST /proxy/api/ticket: login with the ticket of a store."""

from typing import Annotated

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema
from quart import Blueprint, Response, request

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.options import LoginOptionFields, ShortText, parse_login_options
from sso.accounts.model import User
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.sign_in_notices import SignInNotices
from sso.accounts.user_jwt import UserJwts
from sso.core.errors import Forbidden, Unauthorized
from sso.core.jwt import InvalidToken
from sso.core.language import current_language
from sso.core.net import Address
from sso.upstream.tickets.model import Ticket
from sso.upstream.tickets.sign_in import TicketSignIn
from sso.web.client_connection import client_connection
from sso.web.request import client_address, read_model, text_header
from sso.web.request_model import Flag
from sso.web.response import reply


def _ticket(value: object) -> Ticket:
    if isinstance(value, str | dict):
        return value
    raise ValueError("must be a string or an object")


class TicketRequest(LoginOptionFields):
    provider: Annotated[str, StringConstraints(max_length=32)] = Field(description="The id of an identity provider.")
    ticket: Annotated[
        Ticket,
        PlainValidator(_ticket),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ] = Field(description="What the store has given to the game; its form depends on the kind of the provider.")
    otp: ShortText = ""
    link: Flag = Field(False, description="1: link the store account to the guest whose user JWT is sent.")


def ticket_routes(
    sign_in: TicketSignIn,
    jwts: UserJwts,
    devices: KnownDevices,
    authentication_data: AuthenticationDataIssuer,
    applications: ApplicationDirectory,
    notices: SignInNotices,
) -> Blueprint:
    routes = Blueprint("ticket", __name__)

    @routes.post("/proxy/api/ticket")
    async def ticket() -> Response:
        form = await read_model(TicketRequest)
        peer = client_address()
        options = await parse_login_options(form, request.headers, peer, request.headers.get("Ip"), applications)
        guest = await linking_guest(peer) if form.link else None
        with client_connection().cancel_on_disconnect():  # do not ask the store after the client has disconnected
            signed_in, is_new = await sign_in.sign_in(
                form.provider, form.ticket, form.otp, peer, current_language.get(), guest
            )
        data = await authentication_data.issue(signed_in, options)  # a user who is refused gets no notice
        if signed_in.user.login:
            device = await devices.recognize_factor(signed_in.user.login_key, form.factor)
            await devices.remember(signed_in.user, device)
            await notices.client_signed_in(signed_in.user, device, bool(form.factor), options)
        return reply(data | {"auth": form.provider, "created": is_new})

    async def linking_guest(peer: Address) -> User:
        """Returns the guest of the user JWT. Accounts are refused: a JWT must not add a way to sign in to them."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        factor = text_header("Factor")
        if scheme.lower() != "bearer" or not factor:
            raise Unauthorized
        try:
            user = (await jwts.verify(token, peer, factor=factor)).user
        except InvalidToken:
            raise Unauthorized from None
        if not user.is_guest:
            raise Forbidden("only a guest can be linked with a ticket")
        return user

    return routes
