"""Clients that generators make from the OpenAPI document compile, and the one for Python is used with a real server.

The generators are installed once into .rp, from PyPI and npm. Without these registries the tests are skipped.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.kit.long_tests import takes_long
from tests.kit.node_modules import ROOT
from tests.kit.server import Server
from tests.perm.endpoints.conftest import FACTOR, Studio, studio

__all__ = ["studio"]

PYTHON_GENERATOR = "openapi-python-client==0.29.1"
NODE_PACKAGES = ("openapi-typescript@7.13.0", "typescript@5.9.3")
TOOLS = ROOT / ".rp" / "clients"
PROGRAM = """
from sso_client import AuthenticatedClient
from sso_client.api.management import create_user, get_user, list_users
from sso_client.models import UserAnswer, UserCreation, UserList

def run(url: str, token: str, factor: str) -> None:
    client = AuthenticatedClient(base_url=url, token=token, headers={"Factor": factor})
    created = create_user.sync(client=client, body=UserCreation(login="generated@example.com", nick="Gen"))
    assert isinstance(created, UserAnswer), created
    read = get_user.sync(created.data.user_id, client=client)
    assert isinstance(read, UserAnswer)
    assert read.data.nick == "Gen"
    users = list_users.sync(client=client, search="generated")
    assert isinstance(users, UserList)
    assert [user.login for user in users.data] == ["generated@example.com"]
"""
TYPES = """
import type { components, operations } from "./schema";

const user: components["schemas"]["User"] = {} as components["schemas"]["User"];
export const login: string = user.login;
export const erasure: string | null = user.deletion_due;
type Listed = operations["list_users"]["responses"][200]["content"]["application/json"];
export const first = (page: Listed): string | undefined => page.data[0]?.login;
// @ts-expect-error: the limit is a number
export const query: operations["list_users"]["parameters"]["query"] = { limit: "many" };
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def install(done: Path, advice: str, *commands: tuple[str | Path, ...]) -> None:
    """Installs what makes the file, or skips the test."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    for command in () if done.exists() else commands:
        try:
            run(*command, cwd=TOOLS)
        except (AssertionError, OSError):
            pytest.skip(f"cannot be installed from here: {advice}")


@pytest.fixture
def document(server: Server, tmp_path: Path) -> Path:
    with server.client() as client:
        (tmp_path / "openapi.json").write_bytes(client.get("/openapi.json").content)
    return tmp_path / "openapi.json"


@takes_long
@pytest.mark.timeout(600)
def test_python_client(studio: Studio, document: Path, tmp_path: Path) -> None:
    generator = TOOLS / "python" / "bin" / "openapi-python-client"
    pip = (TOOLS / "python" / "bin" / "python", "-m", "pip", "install", "-q", PYTHON_GENERATOR)
    install(generator, f"pip install {PYTHON_GENERATOR}", (sys.executable, "-m", "venv", TOOLS / "python"), pip)
    output = run(
        generator, "generate", "--path", document, "--meta", "none", "--output-path", "sso_client", cwd=tmp_path
    )
    assert "WARNING" not in output, output
    assert "Unable" not in output, output
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    run(sys.executable, "-m", "mypy", "--follow-imports=silent", "program.py", cwd=tmp_path)
    arguments = ", ".join(map(repr, (studio.server.base_url, studio.root.jwt, FACTOR)))
    run(TOOLS / "python" / "bin" / "python", "-c", f"from program import run; run({arguments})", cwd=tmp_path)


@takes_long
@pytest.mark.timeout(600)
def test_typescript_types(document: Path, tmp_path: Path) -> None:
    tools = TOOLS / "node_modules" / ".bin"
    npm = ("npm", "install", "--prefix", TOOLS, "--silent", "--no-fund", "--no-audit", *NODE_PACKAGES)
    install(tools / "openapi-typescript", f"npm install {' '.join(NODE_PACKAGES)}", npm)
    run(tools / "openapi-typescript", document, "-o", "schema.d.ts", cwd=tmp_path)
    (tmp_path / "program.ts").write_text(TYPES)
    run(tools / "tsc", "--strict", "--noEmit", "--skipLibCheck", "program.ts", cwd=tmp_path)
