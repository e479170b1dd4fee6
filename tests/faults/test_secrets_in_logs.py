"""The logs of the server and its database contain no secrets, whatever clients send and whatever fails."""

import re
from typing import Any

import httpx
import pyotp

from sso.core.encryption import MasterKey
from tests.faults import apply, kill, leaked, logs, open_folder, postmaster, serving, sql
from tests.kit.load import KEYS, LOGIN
from tests.kit.server import Server, until

PASSWORD, NEW_PASSWORD, ANOTHER_PASSWORD = "first pass phrase", "second pass phrase", "third pass phrase"
WRONG_PASSWORD, WRONG_TOKEN = "not the pass phrase", "W" * 43
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
PEOPLE = {
    "users": [
        {"login": "plain@example.com", "password": PASSWORD, "nick": "Ann"},
        {"login": "app@example.com", "password": PASSWORD, "nick": "Ann", "totp_secret": TOTP_SECRET},
        {"login": "mail@example.com", "password": PASSWORD, "nick": "Ann", "email_2fa": True},
    ]
}


class Client:
    """Uses the service like a person and collects every secret that it sends or receives."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.base_url, timeout=60)
        self.secrets = {PASSWORD, NEW_PASSWORD, ANOTHER_PASSWORD, WRONG_PASSWORD, WRONG_TOKEN, TOTP_SECRET}

    def sign_in(self, **fields: str) -> tuple[int, dict[str, Any]]:
        answer = self.http.post(LOGIN, json=fields)
        data: dict[str, Any] = answer.json()
        self.secrets |= {data[name] for name in ("token", "stoken", "jwt") if data.get(name)}
        return answer.status_code, data

    def page(self, path: str) -> str:
        answer = self.http.get(path)
        self._remember(answer)
        return answer.text

    def send(self, path: str, **fields: str) -> int:
        """Sends a form."""
        answer = self.http.post(path, data=fields)
        self._remember(answer)
        return answer.status_code

    def csrf(self, page: str) -> str:
        return self.field(page, "csrf")

    def field(self, page: str, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]+)"', page)
        assert found, page
        self.secrets.add(found[1])
        return found[1]

    def _remember(self, answer: httpx.Response) -> None:
        self.secrets |= {cookie.value for cookie in self.http.cookies.jar if cookie.value}
        self.secrets |= set(re.findall(r'name="csrf" value="([^"]+)"', answer.text))


def test_no_secret_reaches_a_log() -> None:
    master_key = MasterKey.generate().text()
    settings = {"SSO_SECRET_KEY": master_key, "SSO_LOG_LEVEL": "debug"}
    with open_folder() as folder, serving(folder, **settings) as server:
        apply(server, PEOPLE)
        client = Client(server)
        client.secrets.add(master_key)
        sign_in_in_every_way(client)
        send_secrets_in_wrong_places(client)
        use_the_pages(client)
        token = change_passwords_on_the_command_line(client)
        sign_in_while_the_database_is_down(client, token)
        sign_in_during_an_internal_error(client, token)
        client.http.close()
        assert server.stop() == 0
        text = logs(server)
        assert leaked(text, client.secrets) == []
        # The logs are complete: they contain requests of every kind.
        assert {entry["status"] for entry in server.log_events("request.answered")} >= {
            200,
            303,
            400,
            401,
            404,
            500,
            503,
        }
        assert "database system is ready" in text
        assert len(client.secrets) > 30
        print(f"{len(client.secrets)} secrets, {text.count(chr(10))} lines")


def sign_in_in_every_way(client: Client) -> None:
    status, data = client.sign_in(login="plain@example.com", password=PASSWORD, factor="device")
    assert status == 200
    assert client.sign_in(token=data["token"], factor="device")[0] == 200
    assert client.sign_in(token=data["stoken"])[0] == 200
    assert client.sign_in(login="plain@example.com", password=PASSWORD, short_token="1")[0] == 200
    assert client.sign_in(login="plain@example.com", password=WRONG_PASSWORD)[0] == 401
    assert client.sign_in(token=WRONG_TOKEN)[0] == 401

    code = pyotp.TOTP(TOTP_SECRET).now()
    client.secrets.add(code)
    assert client.sign_in(login="app@example.com", password=PASSWORD, otp=code)[0] == 200
    assert client.sign_in(login="app@example.com", password=PASSWORD, otp=code)[0] == 401

    assert client.sign_in(login="mail@example.com", password=PASSWORD)[1]["otp"] == ["email"]
    mailed = until(lambda: mailed_codes(client.server))
    client.secrets |= mailed
    assert client.sign_in(login="mail@example.com", password=PASSWORD, otp=min(mailed))[0] == 200


def mailed_codes(server: Server) -> set[str]:
    texts = [path.read_text() for path in (server.folder / "data/mail").glob("*.eml")]
    return {code for text in texts for code in re.findall(r"\b\d{6}\b", text.partition("\n\n")[2])}


def send_secrets_in_wrong_places(client: Client) -> None:
    status, data = client.sign_in(login="plain@example.com", password=PASSWORD, factor="device")
    assert status == 200
    secret = data["token"]
    bearer = {"Authorization": f"Bearer {data['jwt']}", "Cookie": f"sso_session={secret}"}
    assert client.http.get(f"/{secret}", headers=bearer).status_code == 404
    assert client.http.get(f"{KEYS}?token={secret}", headers=bearer).status_code == 200
    assert client.http.get(f"/login?next=/{secret}&password={PASSWORD}").status_code == 200
    for body in (f'{{"password": "{PASSWORD}"', f'{{"password": {{"{PASSWORD}": "{secret}"}}}}', f'["{secret}"]'):
        assert client.http.post(LOGIN, content=body).status_code == 400
    assert client.http.post(LOGIN, json={"login": "plain@example.com", "password": PASSWORD, secret: "1"}).status_code


def use_the_pages(client: Client) -> None:
    person = {"login": "plain@example.com"}
    csrf = client.csrf(client.page("/login"))
    assert client.send("/login", **person, password=WRONG_PASSWORD, csrf=csrf) == 401
    assert client.send("/login", **person, password=PASSWORD, csrf=WRONG_TOKEN) == 403
    assert client.send("/login", **person, password=PASSWORD, csrf=csrf) == 303
    passwords = {"new_password": NEW_PASSWORD, "repeat_password": NEW_PASSWORD}
    csrf = client.csrf(client.page("/account"))
    assert client.send("/account/password", current_password=PASSWORD, csrf=csrf, **passwords) == 303

    page = client.page("/account/totp")
    shown = re.search(r"<code>([A-Z2-7 ]+)</code>", page)
    assert shown is not None
    secret = shown[1].replace(" ", "")
    code = pyotp.TOTP(secret).now()
    client.secrets |= {secret, shown[1], code}
    fields = {"csrf": client.csrf(page), "setup": client.field(page, "setup"), "otp": code}
    assert client.send("/account/totp", current_password=NEW_PASSWORD, **fields) == 303
    assert client.send("/logout", csrf=client.csrf(client.page("/account"))) == 303


def change_passwords_on_the_command_line(client: Client) -> str:
    """Returns a token of a user with a generated password."""
    change = ("user", "set-password", "plain@example.com", "--password-stdin")
    done = client.server.sso(*change, stdin=f"{ANOTHER_PASSWORD}\n")
    assert leaked(done.stdout + done.stderr, client.secrets) == []
    generated = client.server.sso("user", "set-password", "app@example.com").stdout.split()[1]
    client.secrets.add(generated)
    client.server.sso("user", "reset-2fa", "app@example.com")
    status, data = client.sign_in(login="app@example.com", password=generated)
    assert status == 200
    return str(data["token"])


def sign_in_while_the_database_is_down(client: Client, token: str) -> None:
    kill([postmaster(client.server)])
    assert until(lambda: client.sign_in(token=token)[0] == 503)
    assert client.sign_in(login="plain@example.com", password=ANOTHER_PASSWORD)[0] in (200, 401, 503)
    assert until(lambda: client.sign_in(token=token)[0] == 200)


def sign_in_during_an_internal_error(client: Client, token: str) -> None:
    """Causes an unexpected error, which is logged with a traceback."""
    dsn = f"postgresql://sso@/sso?host={client.server.folder}/data/postgres/socket&port=5432"
    sql(dsn, "ALTER TABLE session_tokens RENAME COLUMN kind TO kind_away")
    assert client.sign_in(token=token)[0] == 500
    sql(dsn, "ALTER TABLE session_tokens RENAME COLUMN kind_away TO kind")
    assert client.sign_in(token=token)[0] == 200
