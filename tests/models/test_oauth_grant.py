"""The OAuth grant: a code is redeemed once, a refresh token is replaced by each use, and what has ended stays ended."""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, initialize, multiple, precondition, rule

from tests.kit.oauth import Browser, Site, new_browser, new_site
from tests.kit.server import Server
from tests.models.machine import ServiceMachine, check_model

MAX_GRANTS = 3  # so that a sequence uses the same grant often
PROFILES = ("strict", "oidc")
INVALID_REFRESH = {"strict": "invalid_request", "oidc": "invalid_grant"}


@dataclass
class Grant:
    """What one code led to."""

    site: Site
    code: str
    is_redeemed: bool = False
    is_active: bool = True
    refresh_tokens: list[str] = field(default_factory=list)
    access_tokens: list[str] = field(default_factory=list)


class OAuthGrant(ServiceMachine):
    grants = Bundle("grants")

    def __init__(self) -> None:
        super().__init__()
        self.sites = {profile: new_site(self.server, profile=profile) for profile in PROFILES}
        self.stranger = new_site(self.server, profile="oidc")
        self.browser: Browser = new_browser(self.server).sign_in()
        self.all: list[Grant] = []

    @initialize(target=grants)
    def authorize_both(self) -> MultipleResults[Grant]:
        return multiple(*map(self._new_grant, PROFILES))

    @precondition(lambda self: len(self.all) < MAX_GRANTS)
    @rule(target=grants, profile=st.sampled_from(PROFILES))
    def authorize(self, profile: str) -> Grant:
        return self._new_grant(profile)

    @rule(grant=grants)
    def redeem(self, grant: Grant) -> None:
        answer = grant.site.redeem(grant.code)
        if grant.is_active and not grant.is_redeemed:
            assert answer.status_code == 200, answer.text
            grant.is_redeemed = True
            self._keep(grant, answer.json())
        else:
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
            grant.is_active = False  # somebody else may have the code

    @rule(grant=grants)
    def use_as_another_site(self, grant: Grant) -> None:
        """Is refused, and uses up nothing."""
        assert grant.site.redeem(grant.code, self.stranger.basic()).status_code in (400, 401)
        for token in grant.refresh_tokens[-1:]:
            assert self.stranger.refresh(token, self.stranger.basic()).status_code == 400
            assert self.stranger.revoke(token).status_code == 400

    @rule(grant=grants, age=st.integers(0, 2))
    def refresh(self, grant: Grant, age: int) -> None:
        """Uses a refresh token, which may have been replaced. The first one comes from the code."""
        if not grant.refresh_tokens:
            self.redeem(grant)
            return
        age = min(age, len(grant.refresh_tokens) - 1)
        answer = grant.site.refresh(grant.refresh_tokens[-1 - age])
        if grant.is_active and age == 0:
            assert answer.status_code == 200, answer.text
            self._keep(grant, answer.json())
            return
        assert (answer.status_code, answer.json()["error"]) == (400, INVALID_REFRESH[grant.site.profile])
        if grant.site.profile == "oidc":
            grant.is_active = False

    @rule(grant=grants, age=st.integers(0, 2))
    def revoke(self, grant: Grant, age: int) -> None:
        if not grant.refresh_tokens:
            return
        age = min(age, len(grant.refresh_tokens) - 1)
        answer = grant.site.revoke(grant.refresh_tokens[-1 - age])
        is_newest = grant.is_active and age == 0
        assert answer.status_code == (200 if is_newest else 400), answer.text
        grant.is_active = grant.is_active and not is_newest

    @precondition(lambda self: any(grant.is_active and len(grant.refresh_tokens) > 1 for grant in self.all))
    @rule()
    def end_all_sessions(self) -> None:
        """Disables and enables the user, which ends everything, and signs in again."""
        for disabled in (True, False):
            self.server.apply({"users": [{"login": self.browser.login, "disabled": disabled}]})
        for grant in self.all:
            grant.is_active = False
        self.browser.http.cookies.clear()
        self.browser.sign_in()

    @rule(grant=grants)
    def use_access_tokens(self, grant: Grant) -> None:
        """All tokens of a grant work until it ends, and none afterwards."""
        expected = 200 if grant.is_active else 401
        assert {grant.site.userinfo(token).status_code for token in grant.access_tokens} <= {expected}

    def teardown(self) -> None:
        for grant in self.all:
            self.use_access_tokens(grant)
            if grant.refresh_tokens:
                self.refresh(grant, 0)

    def _new_grant(self, profile: str) -> Grant:
        grant = Grant(self.sites[profile], self.browser.code(self.sites[profile]))
        self.all.append(grant)
        return grant

    def _keep(self, grant: Grant, tokens: dict[str, str]) -> None:
        grant.refresh_tokens.append(tokens["refresh_token"])
        grant.access_tokens.append(tokens["access_token"])


def test_oauth_grant(server: Server) -> None:
    check_model(OAuthGrant, server)
