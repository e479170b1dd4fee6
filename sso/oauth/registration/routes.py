"""The endpoints at which clients register themselves and manage their registration (RFC 7591, RFC 7592)."""

from collections.abc import Iterator
from contextlib import contextmanager

from quart import Blueprint, Response, request

from sso.core.errors import NotFound
from sso.core.field_errors import FieldError
from sso.oauth.clients.authentication import bearer_token
from sso.oauth.errors import InvalidClientMetadata
from sso.oauth.registration.metadata import ClientMetadata
from sso.oauth.registration.registration import ClientRegistration, RegistrationMode
from sso.oauth.registration.resource_metadata import METADATA, METADATA_PATHS, RESOURCES, resource_metadata
from sso.oauth.routes import DISCOVERY, NO_STORE, PUBLIC
from sso.web.request import client_address, read_model
from sso.web.response import reply

REGISTER = "/proxy/oauth/register"
REGISTERED = f"{REGISTER}/<client_id>"
MAX_REGISTRATION = 32 * 1024


def public_paths(mode: RegistrationMode) -> frozenset[str]:
    """Returns the paths that pages of every origin may call: while clients register themselves, they are unknown."""
    return frozenset(METADATA_PATHS) | (frozenset() if mode == "off" else frozenset({REGISTER, *DISCOVERY}))


def registration_routes(registration: ClientRegistration) -> Blueprint:
    routes = Blueprint("registration_of_clients", __name__)

    @routes.post(REGISTER)
    async def register() -> Response:
        require_registration()
        with _refused_metadata():
            metadata = await read_metadata()
            client = await registration.register(metadata, _token(), client_address())
        return reply(client, 201, headers=NO_STORE)

    @routes.get(REGISTERED)
    async def read(client_id: str) -> Response:
        require_registration()
        return reply(await registration.read(client_id, _token()), headers=NO_STORE)

    @routes.put(REGISTERED)
    async def change(client_id: str) -> Response:
        require_registration()
        with _refused_metadata():
            metadata = await read_metadata()
            client = await registration.change(client_id, metadata, _token(), client_address())
        return reply(client, headers=NO_STORE)

    @routes.delete(REGISTERED)
    async def delete(client_id: str) -> Response:
        require_registration()
        await registration.delete(client_id, _token(), client_address())
        return Response(b"", 204, NO_STORE)

    async def read_metadata() -> ClientMetadata:
        return await read_model(ClientMetadata, forms=False, require_type=True, max_bytes=MAX_REGISTRATION)

    def require_registration() -> None:
        if registration.mode == "off":
            raise NotFound

    return routes


def resource_metadata_routes(base_url: str) -> Blueprint:
    routes = Blueprint("resource_metadata", __name__)

    def add(path: str) -> None:
        async def metadata() -> Response:
            return reply(resource_metadata(base_url, path), headers=PUBLIC)

        routes.add_url_rule(METADATA + path, endpoint=f"metadata{path.replace('/', '_')}", view_func=metadata)

    for path in ("", *RESOURCES):
        add(path)
    return routes


@contextmanager
def _refused_metadata() -> Iterator[None]:
    try:
        yield
    except FieldError as error:
        raise InvalidClientMetadata(error) from None


def _token() -> str:
    return bearer_token(request.headers.getlist("Authorization"))
