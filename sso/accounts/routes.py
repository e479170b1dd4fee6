"""POST /proxy/api/login: the ordinary login operation."""

from typing import Annotated

from pydantic import StringConstraints
from quart import Blueprint, Response, request

from sso.accounts.applications import ApplicationsAtLogin
from sso.accounts.auth_data import AuthData
from sso.accounts.devices import Devices
from sso.accounts.errors import OtpRequired
from sso.accounts.model import SecondFactorNeeded, login_key
from sso.accounts.option_fields import OptionFields, Short, checked_options
from sso.accounts.password_login import PasswordLogin
from sso.accounts.second_factor import SecondFactors
from sso.accounts.session_tokens import SessionTokens
from sso.core.errors import ApiError
from sso.web import language
from sso.web.client_connection import client_connection
from sso.web.request import client_address, read_model
from sso.web.response import reply


class LoginRequest(OptionFields):
    login: Annotated[str, StringConstraints(max_length=320)] = ""
    password: Annotated[str, StringConstraints(max_length=1024)] = ""
    token: Short = ""
    otp: Short = ""


def login_routes(
    signin: PasswordLogin,
    factors: SecondFactors,
    tokens: SessionTokens,
    devices: Devices,
    auth_data: AuthData,
    applications: ApplicationsAtLogin,
) -> Blueprint:
    routes = Blueprint("login", __name__)

    @routes.post("/proxy/api/login")
    async def login() -> Response:
        form = await read_model(LoginRequest)
        real = client_address()
        options = await checked_options(form, request.headers, real, request.headers.get("Ip"), applications)
        if form.token:
            source = await tokens.sign_in(form.token, options.address)
            return reply(await auth_data.issue(source.signed_in, options, source))
        if not form.login or not form.password:
            raise ApiError("login and password, or token, are required")
        # What somebody says of an address counts for no limit: attempts are counted where they come from.
        device = await devices.known_factor(login_key(form.login), form.factor)
        with client_connection().cancel_on_disconnect():  # no password is hashed for a client that has gone
            outcome = await signin.with_password(form.login, form.password, real, device.name)
        if isinstance(outcome, SecondFactorNeeded):
            if not form.otp:
                if "email" in outcome.user.ways:
                    language.use_user_language(outcome.user.lang)
                    await factors.send_code(outcome.user)
                raise OtpRequired(outcome.user.ways)
            outcome = await signin.with_code(outcome.user, form.otp, real, device.name)
        await devices.remember(outcome.user, device)
        return reply(await auth_data.issue(outcome, options))

    return routes
