"""Credentials of the client: how it gets the headers of its requests.

``headers`` is a generator: it yields the requests that it needs, gets their answers, and returns the headers. So it
works for both kinds of clients.
"""

import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from sso.client.call import ApiCall, read_body

T = TypeVar("T")
Calls: TypeAlias = Generator[ApiCall[Any], Any, T]  # yields requests, and gets their results
SignIn: TypeAlias = Calls[dict[str, str]]
RENEW_BEFORE_S = 30  # seconds before the end of a token


class Credentials(Protocol):
    def headers(self) -> SignIn: ...

    def forget(self, refused: Mapping[str, str]) -> bool:
        """Called after 401, with the headers that were refused. Returns whether another attempt may succeed."""
        ...


def new_factor() -> str:
    """Returns a device factor. Keep it with the token: the user JWT works with this factor only."""
    return secrets.token_urlsafe(24)


def new_idempotency_key() -> str:
    """Returns the key of a refresh. Repeated with it, a refresh whose response was lost gets the same tokens."""
    return secrets.token_urlsafe(24)


@dataclass
class UserJwt:
    """A user JWT that the program already has, with its factor."""

    jwt: str
    factor: str

    def headers(self) -> SignIn:
        return {"Authorization": f"Bearer {self.jwt}", "Factor": self.factor}
        yield

    def forget(self, refused: Mapping[str, str]) -> bool:
        return False


@dataclass
class ServiceToken:
    """An access token of a service client that the program already has."""

    token: str

    def headers(self) -> SignIn:
        return {"Authorization": f"Bearer {self.token}"}
        yield

    def forget(self, refused: Mapping[str, str]) -> bool:
        return False


@dataclass
class RenewedToken:
    """Keeps a token until it expires, by the clock of this process, or until the server refuses it."""

    value: str = ""
    ends: float = 0

    @property
    def seconds_left(self) -> float:
        return self.ends - time.monotonic() if self.value else 0

    @property
    def is_valid(self) -> bool:
        return self.seconds_left > RENEW_BEFORE_S

    def keep(self, value: str, seconds: float) -> None:
        self.value, self.ends = value, time.monotonic() + seconds

    @property
    def header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.value}"}

    def drop(self, refused: Mapping[str, str]) -> bool:
        """Drops the token if it is the refused one: another thread may have renewed it. A new one may succeed."""
        if refused.get("Authorization") == self.header["Authorization"]:
            self.value = ""
        return True


@dataclass
class ServiceClient:
    """A service client (client_credentials). For the management API, it belongs to the central application."""

    client_id: str
    client_secret: str = field(repr=False)
    _token: RenewedToken = field(default_factory=RenewedToken, repr=False)

    def headers(self) -> SignIn:
        if not self._token.is_valid:
            form = {
                "grant_type": "client_credentials",
                "client_id": self.client_id,
                "client_secret": self.client_secret,
            }
            answer = yield ApiCall(
                "POST", "/proxy/oauth/token", read_body, form=form, authenticated=False, only_asks=True
            )
            self._token.keep(answer["access_token"], answer["expires_in"])
        return self._token.header

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self._token.drop(refused)


@dataclass
class SessionToken:
    """A user who has signed in before: a session token and its factor, with which user JWTs are renewed.

    ``on_renewal`` gets the next session token, for a program that keeps it in a file.
    """

    token: str = field(repr=False)
    factor: str = field(repr=False)
    on_renewal: Callable[[str], None] | None = None
    jwt: RenewedToken = field(default_factory=RenewedToken, repr=False)

    def headers(self) -> SignIn:
        if not self.jwt.is_valid:
            answer = yield _login(token=self.token, factor=self.factor)
            self.use(answer)
        return {**self.jwt.header, "Factor": self.factor}

    def use(self, answer: dict[str, Any]) -> None:
        """Takes the tokens of a login."""
        self.token = answer["token"]
        self.jwt.keep(answer["jwt"], _seconds_left(answer["jwt"]))
        if self.on_renewal:
            self.on_renewal(self.token)

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self.jwt.drop(refused)


class _SessionLogin:
    """A sign-in whose session token is renewed."""

    factor: str
    _session: SessionToken | None = None

    def headers(self) -> SignIn:
        session = self._session or (yield from self.sign_in())
        return (yield from session.headers())

    def sign_in(self) -> Calls[SessionToken]:
        """Signs in. Raises OtpMissing if a code is needed and there is none."""
        raise NotImplementedError

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self._session is not None and self._session.forget(refused)

    def _use(self, answer: dict[str, Any]) -> SessionToken:
        self._session = SessionToken(answer["token"], self.factor)
        self._session.use(answer)
        return self._session


@dataclass
class UserLogin(_SessionLogin):
    """A user with a password, who signs in again if the service has ended the sign-in.

    ``otp`` is a code of the second factor, which works once, or a function that asks for one.
    """

    login: str
    password: str = field(repr=False)
    otp: str | Callable[[list[str]], str] | None = field(default=None, repr=False)
    factor: str = field(default_factory=new_factor, repr=False)

    def headers(self) -> SignIn:
        from sso.client.errors import SignInRequired

        was_signed_in = self._session is not None
        try:
            return (yield from super().headers())
        except SignInRequired:
            if not was_signed_in or isinstance(self.otp, str):
                raise
        self._session = None
        return (yield from super().headers())

    def sign_in(self) -> Calls[SessionToken]:
        """Signs in. Raises OtpMissing if a code is needed and there is none."""
        from sso.client.errors import OtpMissing

        fields = {"login": self.login, "password": self.password, "factor": self.factor}
        if isinstance(self.otp, str):
            fields["otp"] = self.otp
        try:
            answer = yield _login(**fields)
        except OtpMissing as error:
            if not callable(self.otp):
                raise
            answer = yield _login(**fields, otp=self.otp(error.second_factors))
        return self._use(answer)


@dataclass
class TicketLogin(_SessionLogin):
    """A player with the ticket of a store, which works once; the session token signs in afterwards.

    ``provider`` is the id of the identity provider. ``otp`` is a code of the second factor.
    """

    provider: str
    ticket: str | Mapping[str, Any] = field(repr=False)
    otp: str = field(default="", repr=False)
    factor: str = field(default_factory=new_factor, repr=False)
    created: bool | None = field(default=None, init=False)  # whether the ticket has created the user

    def sign_in(self) -> Calls[SessionToken]:
        """Signs in. Raises OtpMissing if a code is needed and there is none: the ticket can be sent again."""
        fields = {"provider": self.provider, "ticket": self.ticket, "factor": self.factor, "otp": self.otp}
        answer = yield ApiCall("POST", "/proxy/api/ticket", read_body, json=fields, authenticated=False)
        self.created = answer["created"]
        return self._use(answer)


@dataclass
class BrowserLogin:
    """A user who has signed in with a browser: a refresh token of a public first-party client (``sso login``)."""

    client_id: str
    refresh_token: str = field(repr=False)
    factor: str = field(repr=False)
    on_renewal: Callable[[str], None] | None = None
    jwt: RenewedToken = field(default_factory=RenewedToken, repr=False)
    idempotency_key: str = field(default_factory=new_idempotency_key, repr=False)  # of the next refresh

    def headers(self) -> SignIn:
        if not self.jwt.is_valid:
            form = {"grant_type": "refresh_token", "refresh_token": self.refresh_token, "client_id": self.client_id}
            key = {"Idempotency-Key": self.idempotency_key}
            tokens = yield ApiCall("POST", "/proxy/oauth/token", read_body, form=form, headers=key, authenticated=False)
            yield from self.use(tokens)
        return {**self.jwt.header, "Factor": self.factor}

    def use(self, tokens: dict[str, Any]) -> Calls[None]:
        """Takes the tokens of the token endpoint, and exchanges the access token for a user JWT."""
        self.refresh_token = tokens.get("refresh_token", self.refresh_token)
        self.idempotency_key = new_idempotency_key()
        if self.on_renewal:
            self.on_renewal(self.refresh_token)
        headers = {"Authorization": f"Bearer {tokens['access_token']}", "Factor": self.factor}
        answer = yield ApiCall("POST", "/proxy/oauth/exchangeToken", read_body, headers=headers, authenticated=False)
        self.jwt.keep(answer["token"], _seconds_left(answer["token"]))

    def forget(self, refused: Mapping[str, str]) -> bool:
        return self.jwt.drop(refused)


def _login(**fields: str) -> ApiCall[dict[str, Any]]:
    return ApiCall("POST", "/proxy/api/login", read_body, json=fields, authenticated=False)


def _seconds_left(jwt: str) -> float:
    """Returns the lifetime of a JWT, which is not verified here: exp minus iat, whatever the local clock says."""
    import base64
    import json

    payload = jwt.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return float(claims["exp"] - claims["iat"])
