"""An OAuth server as a target of the benchmarks: its endpoints and peculiarities."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit


@dataclass(frozen=True)
class SinglePage:
    """A single-page sign-in: it posts JSON and returns to authorize with an additional parameter."""

    login: str
    then: str


@dataclass(frozen=True)
class Target:
    base_url: str
    jwks: str
    userinfo: str
    token: str
    authorize: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str
    users: Sequence[str]
    password: str = field(repr=False)
    introspect: str = ""  # empty: the server has none, or it is not measured
    client_credentials: bool = False
    scope: str = "openid offline_access email profile"
    authorize_params: Mapping[str, str] = field(default_factory=dict)
    token_params: Mapping[str, str] | None = None  # instead of the client's credentials
    token_headers: Mapping[str, str] = field(default_factory=dict)
    refresh_params: Mapping[str, str] = field(default_factory=dict)
    single_page: SinglePage | None = None  # None: the page has a form
    # Some servers occasionally fail concurrent sign-ins. Measurements count failures; preparations may retry.
    at_once: int = 8
    tries: int = 1
    spare_chains: int = 0  # additional chains of refresh tokens, because a lost token ends its chain

    def authorize_path(self) -> str:
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": self.scope,
            "state": f"s{os.urandom(6).hex()}",
            "nonce": f"n{os.urandom(6).hex()}",
            **self.authorize_params,
        }
        return f"{self.authorize}?{urlencode(query)}"

    def code_form(self, code: str) -> dict[str, str]:
        fields = {"grant_type": "authorization_code", "redirect_uri": self.redirect_uri, "code": code}
        return {**fields, **self._credentials()}

    def refresh_form(self) -> dict[str, str]:
        """Returns the form of a refresh request without the token."""
        return {"grant_type": "refresh_token", **self.refresh_params, **self._credentials()}

    def client_form(self) -> dict[str, str]:
        """Returns the credentials of the client as fields of a form."""
        return {"client_id": self.client_id, "client_secret": self.client_secret}

    def _credentials(self) -> Mapping[str, str]:
        if self.token_params is not None:
            return self.token_params
        return {"client_id": self.client_id, "client_secret": self.client_secret}


def address_of(target: Target) -> tuple[str, int]:
    parts = urlsplit(target.base_url)
    return parts.hostname or "", parts.port or 80
