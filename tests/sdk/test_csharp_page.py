"""The program of docs/sdk/csharp.rst, compiled with Mono and run as the page says."""

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.kit.server import Server, clean_environment
from tests.sdk.conftest import SECRET

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/sdk/csharp.rst").read_text()


@pytest.mark.skipif(not shutil.which("mcs") or not shutil.which("mono"), reason="needs mcs and mono: run scripts/sdk")
def test_program_verifies_a_player_and_asks_for_a_rule(
    server: Server, players: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    [code] = re.findall(r"code-block:: csharp\n\n((?:    .*\n|\n)+)", PAGE)
    [command] = re.findall(r"    (mcs (?:.*\\\n)?.*)\n    mono", PAGE)
    (tmp_path / "Server.cs").write_text(textwrap.dedent(code))
    (tmp_path / "sdk").symlink_to(ROOT / "sdk")
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=True, timeout=200)
    for name, expected in (("ann", "ann may kick"), ("bob", "bob may not kick"), ("forged", "refused: malformed")):
        jwt = players[name]["Authorization"].removeprefix("Bearer ")
        answers = (answer(server, jwt, tmp_path) for _ in range(5))
        # The library waits 5 seconds for the keys, in which Mono may not have started on a busy machine.
        assert next(text for text in answers if text != "refused: unavailable") == expected


def answer(server: Server, jwt: str, folder: Path) -> str:
    environment = clean_environment() | {"CLIENT_SECRET": SECRET}
    run = ["mono", "server.exe", server.base_url, jwt]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout.strip()
