"""The program for devices works as docs/oauth.rst and docs/quickstarts/device.rst show it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.browser import fresh_browser, new_user
from tests.kit.device import type_code
from tests.kit.server import Server

ROOT = Path(__file__).parents[2]
OAUTH = (ROOT / "docs/oauth.rst").read_text().partition("\nDevices\n---")[2]
QUICKSTART = (ROOT / "docs/quickstarts/device.rst").read_text()
REGISTER = r"sso (client add tv (?:.*\\\n)*.*)\n"
TOOLS = ("bash", "curl", "jq")
PROMPT = re.compile(r"Open (\S+) and type (\S+)\. The page must show: (.+)\n")


def documented(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    assert found
    return re.sub(r"^    ", "", found[1], flags=re.M)


def test_both_pages_show_the_same_commands() -> None:
    program = documented(OAUTH, r"\.\. code-block:: bash\n\n((?:    .*\n|\n)+)").rstrip()
    example = (ROOT / documented(QUICKSTART, r"    (examples/\S+)\n")).read_text()
    assert example.rstrip().endswith(program.partition("\n")[2])
    assert documented(OAUTH, REGISTER) == documented(QUICKSTART, REGISTER)


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
def test_documented_program_of_a_device_prints_who_has_signed_in(server: Server) -> None:
    command = documented(QUICKSTART, REGISTER).replace("\\\n", " ")
    server.sso(*[word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)])
    program = ROOT / documented(QUICKSTART, r"    (examples/\S+)\n")
    login = new_user(server, user_id="880088")
    with (
        fresh_browser(server, login) as browser,
        subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env={"SSO_URL": server.base_url}) as running,
    ):
        assert running.stdout is not None
        prompt = PROMPT.fullmatch(running.stdout.readline())
        assert prompt
        assert prompt[1] == f"{server.base_url}/device"
        page = type_code(browser, prompt[2])
        assert prompt[3] in page.text
        assert "Films for TV" in page.text
        gsid = str(page.url.path).removeprefix("/game/")
        browser.follow(browser.submit(f"/game/{gsid}/continue"))
        output = running.stdout.read()
        assert running.wait(30) == 0
    shown = json.loads(documented(QUICKSTART, r"\.\. code-block:: json\n\n(    .*\n)"))
    assert json.loads(output) == shown | {"sub": "880088"}
