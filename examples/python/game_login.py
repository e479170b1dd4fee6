"""Game login: show a link and wait until the player has signed in with a browser.

    python game_login.py http://localhost:8000
    python game_login.py http://localhost:8000 game.pem

Only the standard library is needed. With a private RSA key as second argument the requests are signed, so that the
client's address may change; that needs the package `cryptography`.
"""

import argparse
import base64
import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from pathlib import Path

TIMEOUT_S = 45  # longer than the 30 seconds for which the service holds a poll


class LoginFailed(Exception):
    pass


class Unreachable(LoginFailed):
    """The service cannot be reached, or is busy; it may be starting again."""


class GameLogin:
    def __init__(self, base_url: str, key_file: str | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.key = load_key(key_file) if key_file else None
        self.evidence = ""

    def register(self, **fields: str | int) -> tuple[str, str]:
        """Registers a session. Returns the link for the browser and the match code that the game must show."""
        if self.key:
            fields["public_key"] = public_key(self.key)
        answer, headers = self.post("getGsid", fields)
        if answer["status"] != "OK":
            raise LoginFailed(answer["error"])
        self.gsid = answer["gsid"]
        # This secret authenticates later requests. The client's address does as well while it stays the same.
        self.evidence = "?" + urllib.parse.urlsplit(headers["Location"]).query
        return f"{self.base_url}/?gsid={self.gsid}", answer["match"]

    def wait(self) -> dict:
        """Polls until the player has signed in. Returns the login data."""
        while True:
            try:
                answer, _ = self.post("getGsidResult", {"gsid": self.gsid})
            except TimeoutError:
                continue  # poll again at once
            except Unreachable as error:
                print(f"{error}; trying again …", file=sys.stderr)
                time.sleep(1)  # the session survives a restart of the service
                continue
            if answer["status"] == "OK":
                return answer
            if answer["status"] == "RETRY":
                time.sleep(answer["delay"])  # even if it is 0; a client that polls too early may be blocked
            elif answer["status"] == "CANCELLED":
                raise LoginFailed("the sign-in was cancelled")
            else:
                raise LoginFailed(answer["error"])

    def close(self, status: str) -> None:
        """Ends the session. ``status`` is "Success", or "Error", which makes the link unusable."""
        self.post("closeGsid", {"gsid": self.gsid, "status": status})

    def post(self, name: str, fields: dict) -> tuple[dict, Message]:
        body = json.dumps(fields).encode()
        headers = {"Content-Type": "application/json"}
        evidence = self.evidence
        if self.key and evidence:
            headers["Request-Sign"], evidence = sign(self.key, body), ""  # covers exactly these bytes
        url = f"{self.base_url}/proxy/api/gameSession/{name}{evidence}"
        request = urllib.request.Request(url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return parse(answer), answer.headers
        except urllib.error.HTTPError as error:
            if error.code in (429, 502, 503, 504):  # 429: too many requests
                raise Unreachable(f"the service is busy or cannot be reached ({error.code})") from None
            return parse(error), error.headers  # 400: the reason; 403: an id for the operator
        except TimeoutError:
            raise
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise error.reason from None
            raise Unreachable(f"the service cannot be reached at {self.base_url}: {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:  # the connection ended before the answer
            raise Unreachable(f"the service cannot be reached at {self.base_url}: {error}") from None


def parse(answer) -> dict:
    try:
        return json.load(answer)
    except ValueError:
        raise LoginFailed("this is not the address of a sign-on service") from None


def load_key(file: str):
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(Path(file).read_bytes(), None)


def public_key(key) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return base64.b64encode(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def sign(key, body: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    return base64.b64encode(key.sign(body, PKCS1v15(), SHA256())).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base_url", help="address of the service, such as http://localhost:8000")
    parser.add_argument("key_file", nargs="?", help="PEM file with a private RSA key that signs the requests")
    arguments = parser.parse_args()
    if not arguments.base_url.startswith(("http://", "https://")):
        parser.error("base_url: expected an address such as http://localhost:8000")
    try:
        login = GameLogin(arguments.base_url, arguments.key_file)
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"{arguments.key_file}: {error}")
    try:
        link, match = login.register(factor="this device")
        print(f"Sign in at    {link}\nMatch code    {match}", flush=True)
        player = login.wait()
        login.close("Success")
    except KeyboardInterrupt:
        login.close("Error")
        sys.exit(1)
    except (LoginFailed, OSError) as error:
        sys.exit(f"login failed: {error}")
    print(f"Hello, {player['nick']} (user {player['user_id']})")


if __name__ == "__main__":
    main()
