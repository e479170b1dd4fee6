from collections.abc import Iterator

import pytest

from tests.kit.oauth import Browser, Site, close_all, new_browser, new_site
from tests.kit.server import Server


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def site(server: Server) -> Site:
    return new_site(server)


@pytest.fixture(scope="module")
def oidc(server: Server) -> Site:
    return new_site(server, profile="oidc")


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    """The browser of a user who is signed in."""
    return new_browser(server, email_verified=True).sign_in()
