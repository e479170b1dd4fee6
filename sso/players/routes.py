"""POST /proxy/api/guest: sign-in with a key of the player's device."""

from typing import Annotated

from pydantic import Field, StringConstraints
from quart import Blueprint, Response

from sso.accounts.login.options import LoginOptionFields, parse_login_options
from sso.core.device_key import MAX_KEY_TEXT, parse_device_key
from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.core.keys import UnusableKey
from sso.players.guests import GuestRequest
from sso.players.wiring import Players
from sso.web.request import client_address, current_request, read_body
from sso.web.request_model import WholeNumber, validate
from sso.web.response import reply

SIGNATURE_HEADER = "Request-Sign"


class GuestFields(LoginOptionFields):
    public_key: Annotated[str, StringConstraints(max_length=MAX_KEY_TEXT)] = Field(
        description="The device's public key: base64 of a SubjectPublicKeyInfo in DER."
    )
    ts: WholeNumber = Field(description="The time of the request in Unix seconds.")
    nonce: Annotated[str, StringConstraints(min_length=16, max_length=64)] = Field(
        description="A random text that the key has not used before."
    )


def player_routes(players: Players) -> Blueprint:
    routes = Blueprint("players", __name__)

    @routes.post("/proxy/api/guest")
    async def guest() -> Response:
        if not players.accepts_guests:
            raise NotFound
        content = await read_body(forms=False, repeatable=GuestFields.repeatable)
        fields = validate(GuestFields, content)
        headers, peer = current_request().headers, client_address()
        signatures = headers.getlist(SIGNATURE_HEADER)
        if len(signatures) != 1:
            raise FieldError((SIGNATURE_HEADER,), "expected one header: base64 of a signature over the body")
        try:
            key = parse_device_key(fields.public_key)
        except UnusableKey as error:
            raise FieldError(("public_key",), str(error)) from None
        request = GuestRequest(key, fields.ts, fields.nonce, signatures[0], content.raw)
        await players.guests.check_proof(request, peer)
        options = await parse_login_options(fields, headers, peer, headers.get("Ip"), players.applications)
        return reply(await players.guests.sign_in(request, options, peer))

    return routes
