"""Takes the screenshots of the documentation: ``.venv/bin/python -m scripts.screenshots``.

Starts the service and the demo site on free ports with the demo data, opens their pages in headless Chromium and writes
``docs/screenshots/*.png``, with a record of what they show (``scripts/documentation/screenshot_age.py``). Needs
Chromium and the packages of the developers.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from scripts.documentation.screenshot_age import record
from tests.kit.chromium import MISSING, find_chromium, launch_chromium

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "screenshots"
LOGIN, PASSWORD = "player@example.com", "player-password"
ADMINISTRATOR, ADMINISTRATOR_PASSWORD = "demo@example.com", "demo-password"
DESKTOP, PHONE, WIDE = {"width": 1000, "height": 640}, {"width": 390, "height": 780}, {"width": 1280, "height": 640}


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """The addresses of the running service and of the demo site."""
    with tempfile.TemporaryDirectory(prefix="sso-screenshots-") as name:
        Path(name).chmod(0o711)
        port = free_port()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SSO_")}
        environment |= {
            "SSO_BIND": f"127.0.0.1:{free_port()}",
            "SSO_DATA_DIR": f"{name}/data",
            "DEMO_SITE_PORT": str(port),
        }
        environment["SSO_LOG_LEVEL"] = "error"
        command = [sys.executable, "-m", "scripts.run_demo"]
        service = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        assert service.stdout
        try:
            ready = next(filter(None, (re.search(r"ready at (\S+)", line) for line in service.stdout)))
            yield ready[1], f"http://127.0.0.1:{port}"
        finally:
            service.terminate()
            service.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def game_link(service: str) -> str:
    """The link that a game shows to its player."""
    body = json.dumps({"gapp_id": "10"}).encode()
    request = urllib.request.Request(
        f"{service}/proxy/api/gameSession/getGsid", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return f"{service}/?gsid={json.load(answer)['gsid']}"


def sign_in(page: Page, login: str = LOGIN, password: str = PASSWORD) -> None:
    page.get_by_label("E-mail").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/account")


def take(page: Page, name: str) -> None:
    page.screenshot(path=FOLDER / f"{name}.png")
    print(f"{name}.png")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    FOLDER.mkdir(exist_ok=True)
    with demo() as (service, site), sync_playwright() as driver:
        browser = launch_chromium(driver, chromium)
        page = browser.new_page(viewport=DESKTOP, color_scheme="light")
        page.goto(site)
        take(page, "site-light")
        page.goto(game_link(service))
        take(page, "game-login-light")
        page = browser.new_page(viewport=PHONE, color_scheme="dark")
        page.goto(f"{service}/login")
        sign_in(page)
        page.goto(f"{service}/account")
        take(page, "account-dark")
        page = browser.new_page(viewport=WIDE, color_scheme="light")
        page.goto(f"{service}/login")
        sign_in(page, ADMINISTRATOR, ADMINISTRATOR_PASSWORD)
        page.goto(f"{service}/console/projects")
        take(page, "console-light")
        browser.close()
    record()


if __name__ == "__main__":
    main()
