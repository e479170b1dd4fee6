"""The endpoint at which a device starts its sign-in."""

from quart import Blueprint, Response

from sso.device.authorization import DeviceAuthorization
from sso.oauth.clients.assertions import ClientAssertions
from sso.oauth.recording.recorder import RequestRecorder
from sso.oauth.routes import NO_STORE, ClientAuthenticationFields, read_credentials
from sso.web.request import client_address, read_model
from sso.web.response import reply

PATH = "/proxy/oauth/device_authorization"


class DeviceRequest(ClientAuthenticationFields):
    scope: str = ""


def device_routes(
    authorization: DeviceAuthorization, assertions: ClientAssertions, recorder: RequestRecorder
) -> Blueprint:
    routes = Blueprint("device_authorization", __name__)

    @routes.post(PATH)
    @recorder.observed("device_authorization")
    async def device_authorization() -> Response:
        body = await read_model(DeviceRequest, require_type=True)
        credentials = await read_credentials(body, assertions, PATH)
        return reply(await authorization.begin(credentials, body.scope, client_address()), headers=NO_STORE)

    return routes
