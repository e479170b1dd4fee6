from collections.abc import Iterator

import pytest

from tests.kit.browser import Browser as PageBrowser
from tests.kit.browser import fresh_browser, new_user
from tests.kit.device import new_device_site
from tests.kit.logout_receiver import LogoutReceiver, logout_receiver
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


@pytest.fixture
def receiver() -> Iterator[LogoutReceiver]:
    with logout_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def tv(server: Server) -> Site:
    """A public client of devices."""
    return new_device_site(server)


@pytest.fixture(scope="module")
def ann(server: Server) -> str:
    return new_user(server, email_verified=True)


@pytest.fixture(scope="module")
def anns_browser(server: Server, ann: str) -> Iterator[PageBrowser]:
    with fresh_browser(server, ann) as browser:
        yield browser
