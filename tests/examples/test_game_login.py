"""The programs in examples/ log in at a real server, with and without a key."""

import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sdk.contract.runner import SCENARIOS
from sso.cli.play.scripted.script import read_script
from sso.cli.play.scripted.service import ScriptedService
from tests.kit.browser import Browser, fresh_browser, new_user
from tests.kit.play import Game, game, sign_in_to
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

EXAMPLES = Path(__file__).parents[2] / "examples"
Command = tuple[str, ...]


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa_key()


@pytest.fixture(scope="module")
def pem_file(key: rsa.RSAPrivateKey, tmp_path_factory: pytest.TempPathFactory) -> str:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("keys") / "game.pem"
    file.write_bytes(key.private_bytes(*form))
    return str(file)


@pytest.fixture(scope="module")
def xml_file(key: rsa.RSAPrivateKey, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same key in the format that Mono reads."""
    n = key.private_numbers()
    numbers = {
        "Modulus": (n.public_numbers.n, 256), "Exponent": (n.public_numbers.e, 3), "P": (n.p, 128), "Q": (n.q, 128),
        "DP": (n.dmp1, 128), "DQ": (n.dmq1, 128), "InverseQ": (n.iqmp, 128), "D": (n.d, 256),
    }  # fmt: skip
    fields = (f"<{k}>{b64encode(v.to_bytes(size, 'big')).decode()}</{k}>" for k, (v, size) in numbers.items())
    file = tmp_path_factory.mktemp("keys") / "game.xml"
    file.write_text(f"<RSAKeyValue>{''.join(fields)}</RSAKeyValue>")
    return str(file)


def build(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr


@pytest.fixture(scope="module")
def python_game() -> Command:
    return (sys.executable, str(EXAMPLES / "python/game_login.py"))


@pytest.fixture(scope="module")
def cpp_game(tmp_path_factory: pytest.TempPathFactory) -> Command:
    headers = [Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu*")]
    for header in ("curl/curl.h", "openssl/evp.h"):
        if not any((folder / header).exists() for folder in headers):
            pytest.skip(
                f"the C++ example is not built: {header} is missing: apt-get install libcurl4-openssl-dev libssl-dev"
            )
    if not shutil.which("g++"):
        pytest.skip("the C++ example is not built: apt-get install g++")
    program = str(tmp_path_factory.mktemp("cpp") / "game_login")
    flags = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
    build("g++", *flags, str(EXAMPLES / "cpp/game_login.cpp"), "-lcurl", "-lcrypto", "-o", program)
    return (program,)


@pytest.fixture(scope="module")
def csharp_game(tmp_path_factory: pytest.TempPathFactory) -> Command:
    if not shutil.which("mcs") or not shutil.which("mono"):
        pytest.skip("the C# example is not built: apt-get install mono-mcs mono-devel")
    if not Path("/usr/lib/mono/4.5/System.Web.Extensions.dll").exists():
        pytest.skip("the C# example is not built: apt-get install mono-devel")
    program = str(tmp_path_factory.mktemp("csharp") / "GameLogin.exe")
    libraries = ("-r:System.Net.Http", "-r:System.Web.Extensions")
    sources = (str(EXAMPLES / "csharp/GameLogin.cs"), str(Path(__file__).parent / "MonoShim.cs"))
    build("mcs", "-langversion:latest", *libraries, f"-out:{program}", *sources)
    return ("mono", program)


def log_in(server: Server, command: Sequence[str], *arguments: str) -> Game:
    """Runs an example until it greets the player."""
    login = new_user(server, nick="Ann Ünïcode ☃ 🎮")
    with game(*command, server.base_url, *arguments) as running, Browser(server) as browser:
        words = running.line_after("Match code")
        browser.get(running.path)
        assert f">{words}<" in browser.page.text
        sign_in_to(running, browser, login)
        assert running.ended() == 0, running.err
    assert "Hello, Ann Ünïcode ☃ 🎮 (user " in running.out
    return running


def test_python_example_explains_its_arguments(python_game: Command) -> None:
    shown = subprocess.run([*python_game, "--help"], capture_output=True, text=True, check=True).stdout
    assert "base_url" in shown
    assert "http://localhost:8000" in shown


def test_cpp_example_builds_with_cmake(cpp_game: Command, tmp_path: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed: apt-get install cmake")
    build("cmake", "-S", str(EXAMPLES / "cpp"), "-B", str(tmp_path))
    build("cmake", "--build", str(tmp_path))
    assert (tmp_path / "game_login").exists()


def test_python_example_logs_in(server: Server, python_game: Command, pem_file: str) -> None:
    log_in(server, python_game)
    log_in(server, python_game, pem_file)


def test_cpp_example_logs_in(server: Server, cpp_game: Command, pem_file: str) -> None:
    log_in(server, cpp_game)
    log_in(server, cpp_game, pem_file)


def test_csharp_example_logs_in(server: Server, csharp_game: Command, xml_file: str) -> None:
    log_in(server, csharp_game)
    log_in(server, csharp_game, xml_file)


@pytest.mark.parametrize("language", ["python", "cpp", "csharp"])
def test_example_polls_again_after_too_many_requests(language: str, request: pytest.FixtureRequest) -> None:
    command = request.getfixturevalue(f"{language}_game")
    service = ScriptedService(read_script(SCENARIOS / "too_many_requests.json"))

    async def play() -> subprocess.CompletedProcess[bytes]:
        async with trio.open_nursery() as nursery:
            base_url = await nursery.start(service.serve)
            done = await trio.run_process([*command, base_url], capture_stdout=True, capture_stderr=True, check=False)
            nursery.cancel_scope.cancel()
        return done

    done = trio.run(play)
    assert ("Hello, Demo (user 1000)" in done.stdout.decode(), service.is_over) == (True, True), done.stderr


@pytest.mark.parametrize("language", ["python", "cpp", "csharp"])
def test_denial_ends_the_example(server: Server, language: str, request: pytest.FixtureRequest) -> None:
    command = request.getfixturevalue(f"{language}_game")
    with fresh_browser(server, new_user(server)) as browser, game(*command, server.base_url) as running:
        browser.follow(browser.get(running.path))
        browser.submit(f"/game/{running.gsid}/deny")
        assert running.ended() == 1
        assert "session denied" in running.err


def test_python_example_reports_wrong_arguments_in_one_line(python_game: Command, server: Server) -> None:
    for arguments, error in (
        (("file:///etc",), "base_url: expected an address such as http://localhost:8000"),
        ((f"{server.base_url}/login",), "login failed: this is not the address of a sign-on service"),
        (
            ("http://127.0.0.1:1",),
            "the service cannot be reached at http://127.0.0.1:1: [Errno 111] Connection refused",
        ),
        ((server.base_url, "/missing.pem"), "/missing.pem: [Errno 2] No such file or directory: '/missing.pem'"),
    ):
        done = subprocess.run([*python_game, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode > 0
        assert done.stderr.splitlines()[-1].endswith(error)
        assert "Traceback" not in done.stderr
