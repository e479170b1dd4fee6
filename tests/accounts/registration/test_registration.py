"""Registration by page: e-mail address, link or code, nickname and password."""

from tests.kit.browser import VISIT, Browser, new_user, query
from tests.kit.builders import PASSWORD
from tests.kit.registration import complete, mailed_code, mailed_link, mails_to, new_address, request_mail
from tests.kit.server import Server


def users_with(server: Server, address: str) -> list[dict[str, object]]:
    return [dict(row) for row in query(server, "SELECT * FROM users WHERE login = $1", address)]


def test_link_creates_a_user_with_a_verified_address(browser: Browser, open_server: Server) -> None:
    address = new_address()
    browser.follow(request_mail(browser, address))
    assert address in browser.page.text
    assert users_with(open_server, address) == []
    text = mails_to(open_server, address)[0]
    assert f"{open_server.base_url}/register?token=" in text
    browser.get(mailed_link(text))
    assert users_with(open_server, address) == []
    answer = complete(browser, nick=" Ann Wanderer ")
    browser.follow(answer)
    assert browser.notice == "Welcome! Your account has been created."
    [user] = users_with(open_server, address)
    assert (user["nick"], user["email_verified"], user["lang"]) == ("Ann Wanderer", True, "en")
    assert int(str(user["user_id"])) >= 1000
    created = "SELECT after ->> 'login' FROM audit WHERE operation = 'user.create' AND target = $1 AND user_id = $1"
    assert [row[0] for row in query(open_server, created, user["user_id"])] == [address]
    with Browser(open_server) as other:
        assert other.sign_in(address).status_code == 303


def test_code_creates_a_user(browser: Browser, open_server: Server) -> None:
    address = new_address()
    browser.follow(request_mail(browser, address))
    code = mailed_code(mails_to(open_server, address)[0])
    browser.follow(browser.submit("/register/code", otp=f"{code[:3]} {code[3:]}"))
    browser.follow(complete(browser))
    assert browser.is_signed_in
    assert users_with(open_server, address)[0]["email_verified"]


def test_link_works_in_another_browser(browser: Browser, open_server: Server) -> None:
    address = new_address()
    request_mail(browser, address)
    with Browser(open_server) as phone:
        phone.get(mailed_link(mails_to(open_server, address)[0]))
        phone.follow(complete(phone))
        assert phone.is_signed_in
    assert not browser.is_signed_in


def test_code_is_bound_to_the_browser(browser: Browser, open_server: Server) -> None:
    address, other_address = new_address(), new_address()
    request_mail(browser, address)
    code = mailed_code(mails_to(open_server, address)[0])
    with Browser(open_server) as other:
        other.follow(request_mail(other, other_address))
        assert other.submit("/register/code", otp=code).status_code == 422


def test_code_is_dead_after_five_wrong_ones(browser: Browser, open_server: Server) -> None:
    address = new_address()
    browser.follow(request_mail(browser, address))
    text = mails_to(open_server, address)[0]
    code = mailed_code(text)
    wrong = "000000" if code != "000000" else "111111"
    assert [browser.submit("/register/code", otp=wrong).status_code for _ in range(5)] == [422] * 5
    assert "incorrect or no longer works" in browser.problem
    assert browser.submit("/register/code", otp=code).status_code == 422
    browser.get(mailed_link(text))  # the link still works
    assert complete(browser).status_code == 303


def test_link_works_once(browser: Browser, open_server: Server) -> None:
    address = new_address()
    request_mail(browser, address)
    link = mailed_link(mails_to(open_server, address)[0])
    browser.get(link)
    form, visit = browser.form("/register/complete"), browser.cookie(VISIT)
    assert complete(browser).status_code == 303
    with Browser(open_server) as other:
        assert other.get(link).status_code == 410
        assert "This link no longer works" in other.page.text
        assert visit
        other.set_cookie(visit, VISIT)
        assert other.post("/register/complete", form | {"nick": "x", "password": PASSWORD}).status_code == 410


def test_second_link_of_an_address_finds_the_account(browser: Browser, open_server: Server) -> None:
    address = new_address()
    request_mail(browser, address)
    request_mail(browser, address.upper())
    first, second = mails_to(open_server, address)[0], mails_to(open_server, address.upper())[0]
    browser.get(mailed_link(first))
    complete(browser)
    with Browser(open_server) as other:
        assert other.get(mailed_link(second)).status_code == 409
        assert "already an account" in other.page.text


def test_owner_of_an_account_gets_another_mail(browser: Browser, open_server: Server) -> None:
    login = new_user(open_server)
    browser.follow(request_mail(browser, login))
    [text] = mails_to(open_server, login)
    assert "already has one" in text
    assert f"{open_server.base_url}/login" in text
    assert f"{open_server.base_url}/forgot" in text
    assert "token=" not in text


def test_wrong_input_is_explained_and_changes_nothing(browser: Browser, open_server: Server) -> None:
    for wrong in ("", "ann", "ann@", "a b@example.com", "ann@example.com\r\nBcc: x@example.com", "x" * 5000):
        assert request_mail(browser, wrong).status_code == 422
        assert browser.problem == "Please enter an e-mail address, such as name@example.com."
    address = new_address()
    request_mail(browser, address)
    browser.get(mailed_link(mails_to(open_server, address)[0]))
    for nick, password, problem in (
        ("", PASSWORD, "Please enter a nickname."),
        ("x" * 65, PASSWORD, "Your nickname must have at most 64 characters."),
        ("Ann\u202e", PASSWORD, "Your nickname contains a character that cannot be shown."),
        ("Ann", "short", "Your password must have at least 8 characters."),
    ):
        assert complete(browser, nick, password).status_code == 422
        assert browser.problem == problem
    assert users_with(open_server, address) == []
    assert complete(browser).status_code == 303


def test_unknown_link_is_refused(browser: Browser) -> None:
    for token in ("", "x", "é" * 43, "a" * 43, "a" * 5000):
        assert browser.get("/register", params={"token": token}).status_code == 410, token


def test_international_address_is_normalised(browser: Browser, open_server: Server) -> None:
    new_user(open_server, login="jörg@xn--bcher-kva.example")
    browser.follow(request_mail(browser, "Jörg@BÜCHER.example"))
    assert "already has one" in mails_to(open_server, "Jörg@xn--bcher-kva.example")[0]


def test_forms_of_other_sites_are_refused(browser: Browser, open_server: Server) -> None:
    address = new_address()
    browser.get("/register")
    form = browser.form("/register") | {"email": address}
    assert browser.post("/register", form | {"csrf": "x"}).status_code == 403
    assert browser.post("/register", form, Origin="https://evil.example").status_code == 403
    for path in ("/register/code", "/register/complete"):
        assert browser.post(path, {"csrf": "x"}).status_code == 403
    assert query(open_server, "SELECT 1 FROM registration_codes WHERE login = $1", address) == []


def test_registration_at_another_host_is_refused(browser: Browser) -> None:
    assert browser.http.get("/register", headers={"Host": "evil.example"}).status_code == 400


def test_signed_in_user_is_not_asked_to_register(browser: Browser, open_server: Server) -> None:
    browser.sign_in(new_user(open_server))
    assert browser.get("/register").headers["Location"] == "/account"
