from collections.abc import Iterator

import pytest

from tests.conformance.relying_party import RelyingParty
from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server

REDIRECT_URI = "https://rp.example.com/test/a/sso/callback"
POST_LOGOUT_URI = "https://rp.example.com/test/a/sso/post_logout_redirect"


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def site(server: Server) -> Site:
    """A statically registered client with an exact redirect URI."""
    return new_site(
        server,
        profile="oidc",
        redirect_uri=REDIRECT_URI,
        redirect_uris=[REDIRECT_URI],
        post_logout_redirect_uris=[POST_LOGOUT_URI],
    )


@pytest.fixture(params=["default", "form_post"])
def mode(request: pytest.FixtureRequest) -> str:
    """The response mode: the Form Post plan repeats the modules of the Basic plan."""
    mode: str = request.param
    return mode


@pytest.fixture(scope="module")
def signed_in(server: Server) -> Browser:
    return new_browser(server, email_verified=True).sign_in()


@pytest.fixture
def rp(site: Site, signed_in: Browser, mode: str) -> RelyingParty:
    """A relying party whose user is signed in to the service."""
    return RelyingParty(site, signed_in, mode)


@pytest.fixture
def new_visitor(server: Server, site: Site, mode: str) -> RelyingParty:
    """A relying party whose user is not signed in."""
    return RelyingParty(site, new_browser(server, email_verified=True), mode)
