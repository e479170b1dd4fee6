"""POST /proxy/api/login: the ordinary login operation."""

from typing import Annotated

from pydantic import AliasChoices, Field, StringConstraints
from quart import Blueprint, Response, request

from sso.accounts.applications import ApplicationsAtLogin
from sso.accounts.auth_data import AuthData
from sso.accounts.errors import OtpRequired
from sso.accounts.model import LoginOptions, SecondFactorNeeded
from sso.accounts.second_factor import SecondFactors
from sso.accounts.session_tokens import SessionTokens
from sso.accounts.signin import SignIn
from sso.core.keys import UnusableKey, load_rsa_public
from sso.core.net import Address, private_networks
from sso.core.refused import Refused
from sso.web import language
from sso.web.fields import AppId, Flag, Request, Strings
from sso.web.http import address, read, reply

Short = Annotated[str, StringConstraints(max_length=256)]


class LoginRequest(Request):
    login: Annotated[str, StringConstraints(max_length=320)] = ""
    password: Annotated[str, StringConstraints(max_length=1024)] = ""
    token: Short = ""
    otp: Short = ""
    factor: Short = ""
    distr: Short = ""
    jwt_public_key: Annotated[str, StringConstraints(max_length=4096)] = ""
    app_id: AppId = 0
    gapp_id: AppId = 0
    service_jwt: str = ""
    with_email: Short = ""
    nojwt: Flag = False
    short_token: Flag = False
    fixed_ip: Flag = False
    fixed_ips: Strings = Field(
        default_factory=list, max_length=64, validation_alias=AliasChoices("fixed_ips[]", "fixed_ips")
    )
    meta: Flag = False

    def options(self, client: Address, app_id: int) -> LoginOptions:
        """``app_id`` may have come with a service JWT."""
        return LoginOptions(
            address=client,
            factor=self.factor,
            jwt_public_key=self.jwt_public_key,
            distr=self.distr,
            nojwt=self.nojwt,
            short_token=self.short_token,
            fixed_ips=fixed_networks(self.fixed_ip, self.fixed_ips, client),
            meta=self.meta,
            app_id=app_id,
            gapp_id=self.gapp_id,
            with_email=self.with_email,
        )


def fixed_networks(fixed_ip: bool, fixed_ips: list[str], client: Address) -> tuple[str, ...]:
    """Where the user JWT shall work: the creating address, the private networks given, or both."""
    try:
        networks = private_networks(fixed_ips)
    except ValueError as error:
        raise Refused(f"fixed_ips[]: {error}") from None
    own = (f"{client}/{client.max_prefixlen}",) if fixed_ip else ()
    return own + tuple(str(network) for network in networks)


def check_jwt_public_key(text: str) -> None:
    if text:
        try:
            load_rsa_public(text)
        except UnusableKey as error:
            raise Refused(f"jwt_public_key: {error}") from None


def login_routes(
    signin: SignIn,
    factors: SecondFactors,
    tokens: SessionTokens,
    auth_data: AuthData,
    applications: ApplicationsAtLogin,
) -> Blueprint:
    routes = Blueprint("login", __name__)

    @routes.post("/proxy/api/login")
    async def login() -> Response:
        form = await read(LoginRequest)
        real = address()
        options = await checked_options(form, real)
        if form.token:
            source = await tokens.sign_in(form.token, options.address)
            return reply(await auth_data.issue(source.signed_in, options, source))
        if not form.login or not form.password:
            raise Refused("login and password, or token, are required")
        # What somebody says of an address counts for no limit: attempts are counted where they come from.
        outcome = await signin.with_password(form.login, form.password, real)
        if isinstance(outcome, SecondFactorNeeded):
            if not form.otp:
                if "email" in outcome.user.ways:
                    language.known_to_read(outcome.user.lang)
                    await factors.send_code(outcome.user)
                raise OtpRequired(outcome.user.ways)
            outcome = await signin.with_code(outcome.user, form.otp, real)
        return reply(await auth_data.issue(outcome, options))

    async def checked_options(form: LoginRequest, real: Address) -> LoginOptions:
        check_jwt_public_key(form.jwt_public_key)
        named = tuple(number for number in (form.app_id, form.gapp_id) if number)
        app_id = form.app_id
        if form.service_jwt:
            named = await applications.of_service(form.service_jwt, named)
            app_id = form.app_id if form.app_id or form.gapp_id else named[0]
        await applications.check_exist(named)
        client = await applications.client_address(
            real, request.headers.get("Ip"), request.headers.get("Signature"), named
        )
        return form.options(client, app_id)

    return routes
