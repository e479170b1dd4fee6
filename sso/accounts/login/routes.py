"""POST /proxy/api/login: login with a password or a session token. POST /proxy/api/logout ends it."""

from typing import Annotated

from pydantic import Field, StringConstraints
from quart import Blueprint, Response, request

from sso.accounts.authentication_data import AuthenticationDataIssuer
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.code_check import CodeCheck
from sso.accounts.login.options import LoginOptionFields, ShortText, parse_login_options
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.model import SecondFactorRequired, login_key
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.second_factor.requirement import UsedFactorRequirement
from sso.accounts.session_tokens import SessionTokens
from sso.accounts.sign_in_notices import SignInNotices
from sso.accounts.signed_in_game_store import SignedInGames
from sso.core.errors import ApiError
from sso.web.client_connection import client_connection
from sso.web.request import client_address, read_model
from sso.web.request_model import RequestModel
from sso.web.response import reply


class LoginRequest(LoginOptionFields):
    login: Annotated[str, StringConstraints(max_length=320)] = ""
    password: Annotated[str, StringConstraints(max_length=1024)] = ""
    token: ShortText = ""
    otp: ShortText = ""


class EndSignInRequest(RequestModel):
    token: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(description="A session token.")


def login_routes(
    password_login: PasswordLogin,
    codes: CodeCheck,
    tokens: SessionTokens,
    devices: KnownDevices,
    authentication_data: AuthenticationDataIssuer,
    applications: ApplicationDirectory,
    notices: SignInNotices,
    requirement: UsedFactorRequirement,
    games: SignedInGames,
) -> Blueprint:
    routes = Blueprint("login", __name__)

    @routes.post("/proxy/api/login")
    async def login() -> Response:
        form = await read_model(LoginRequest)
        peer = client_address()
        options = await parse_login_options(form, request.headers, peer, request.headers.get("Ip"), applications)
        if form.token:
            source = await tokens.sign_in(form.token, options.address)
            requirement.check_sign_in(source.signed_in)
            return reply(await authentication_data.issue(source.signed_in, options, source))
        if not form.login or not form.password:
            raise ApiError("login and password, or token, are required")
        # Attempts are counted for the address of the connection, not for the one that a header claims.
        device = await devices.recognize_factor(login_key(form.login), form.factor)
        with client_connection().cancel_on_disconnect():  # do not hash a password after the client has disconnected
            outcome = await password_login.check_password(form.login, form.password, peer, device.name)
        if isinstance(outcome, SecondFactorRequired):
            outcome = await codes.check(outcome.user, form.otp, peer, device.name)
        requirement.check_sign_in(outcome)
        data = await authentication_data.issue(outcome, options)  # a user who is refused gets no notice
        await devices.remember(outcome.user, device)
        await notices.client_signed_in(outcome.user, device, bool(form.factor), options)
        return reply(data)

    @routes.post("/proxy/api/logout")
    async def logout() -> Response:
        form = await read_model(EndSignInRequest)
        await games.end_with_token(form.token)
        return reply({"status": "OK"})

    return routes
