"""The program for devices in docs/oauth.rst works as shown."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.browser import fresh_browser, new_user
from tests.kit.device import type_code
from tests.kit.server import Server

TEXT = (Path(__file__).parents[2] / "docs" / "oauth.rst").read_text().partition("\nDevices\n---")[2]
TOOLS = ("bash", "curl", "jq")
PROMPT = re.compile(r"Open (\S+) and type (\S+)\. The page must show: (.+)\n")


def documented(pattern: str) -> str:
    found = re.search(pattern, TEXT)
    assert found
    return found[1]


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
def test_documented_program_of_a_device_prints_who_has_signed_in(server: Server) -> None:
    command = documented(r"\$ sso (client add tv (?:.*\\\n)*.*)\n").replace("\\\n", " ")
    added = server.sso(*[word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)])
    assert added.returncode == 0, added.stderr
    script = documented(r"\.\. code-block:: bash\n\n((?:    .*\n|\n)+)").replace(
        "https://sso.example.com", server.base_url
    )
    login = new_user(server, user_id="880088")
    with (
        fresh_browser(server, login) as browser,
        subprocess.Popen(["bash", "-euc", script], stdout=subprocess.PIPE, text=True) as program,
    ):
        assert program.stdout is not None
        prompt = PROMPT.fullmatch(program.stdout.readline())
        assert prompt
        assert prompt[1] == f"{server.base_url}/device"
        page = type_code(browser, prompt[2])
        assert prompt[3] in page.text
        assert "Films for TV" in page.text
        gsid = str(page.url.path).removeprefix("/game/")
        browser.follow(browser.submit(f"/game/{gsid}/continue"))
        output = program.stdout.read()
        assert program.wait(30) == 0
    assert json.loads(output)["sub"] == "880088"
