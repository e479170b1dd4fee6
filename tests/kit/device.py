"""A device without a browser, from the view of its program: it asks for codes and then for tokens (RFC 8628)."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.kit.browser import Browser, query
from tests.kit.oauth import TOKEN, Site, new_site
from tests.kit.server import Server

DEVICE_AUTHORIZATION = "/proxy/oauth/device_authorization"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
SCOPE = "openid offline_access email"


def new_device_site(server: Server, **fields: Any) -> Site:
    """Returns a public client whose programs may use the device grant."""
    grant_types = fields.pop("grant_types", [DEVICE_CODE, "refresh_token"])
    public = fields.pop("public", True)
    return new_site(server, public=public, profile="oidc", grant_types=grant_types, **fields)


@dataclass(frozen=True)
class Device:
    """One sign-in of a device."""

    site: Site
    device_code: str
    user_code: str
    match: str
    answer: dict[str, Any]

    @property
    def gsid(self) -> str:
        return self.device_code.partition(".")[0]

    def form(self, **changes: Any) -> dict[str, Any]:
        form = {"grant_type": DEVICE_CODE, "device_code": self.device_code, "client_id": self.site.client_id, **changes}
        return {name: value for name, value in form.items() if value is not None}

    def ask(self, http: httpx.Client | None = None, /, **changes: Any) -> httpx.Response:
        """Asks for the tokens. By default the request is not held."""
        return (http or self.site.http).post(TOKEN, data=self.form(**changes))

    def let_interval_pass(self) -> None:
        self.change("polled_at = polled_at - interval '1 hour'")

    def change(self, assignment: str) -> None:
        query(self.site.server, f"UPDATE game_sessions SET {assignment} WHERE gsid = $1", self.gsid)

    def row(self) -> Any:
        return query(self.site.server, "SELECT * FROM game_sessions WHERE gsid = $1", self.gsid)[0]


def begin(site: Site, **fields: Any) -> httpx.Response:
    form = {"client_id": site.client_id, "scope": SCOPE, **fields}
    return site.http.post(DEVICE_AUTHORIZATION, data={name: value for name, value in form.items() if value is not None})


def start_device(site: Site, **fields: Any) -> Device:
    answer = begin(site, **fields)
    assert answer.status_code == 200, answer.text
    data = answer.json()
    return Device(site, data["device_code"], data["user_code"], data["match"], data)


def type_code(browser: Browser, typed: str) -> httpx.Response:
    """Types a code on the page, and follows to the page of the session if the code is right."""
    browser.get("/device")
    answer = browser.submit("/device", user_code=typed)
    while answer.is_redirect:
        answer = browser.follow(answer)
    return answer


def confirm(browser: Browser, device: Device) -> httpx.Response:
    """Confirms the sign-in of the device with a browser that is signed in. Returns the resulting page."""
    page = type_code(browser, device.user_code)
    assert page.status_code == 200, page.text
    assert device.match in page.text
    return browser.follow(browser.submit(f"/game/{device.gsid}/continue"))


def refuse(browser: Browser, device: Device) -> httpx.Response:
    assert device.match in type_code(browser, device.user_code).text
    return browser.submit(f"/game/{device.gsid}/deny")


def tokens_of(device: Device, browser: Browser) -> dict[str, str]:
    """Confirms the sign-in, and returns the tokens that the device gets."""
    confirm(browser, device)
    answer = device.ask()
    assert answer.status_code == 200, answer.text
    tokens: dict[str, str] = answer.json()
    return tokens
