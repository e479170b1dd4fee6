from tests.kit.oauth import Browser, Site, error_of


def test_smoke(site: Site, browser: Browser) -> None:
    data = site.tokens(browser)
    assert site.userinfo(data["access_token"]).json()["status"] == "ok"
    again = site.refresh(data["refresh_token"])
    assert again.status_code == 200, again.text
    assert error_of(site.refresh(data["refresh_token"])) == (400, "invalid_request")
    assert site.revoke(again.json()["refresh_token"]).json() == {"status": "ok"}
    assert error_of(site.userinfo(data["access_token"])) == (401, "invalid_token")
