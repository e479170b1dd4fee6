"""The programs on the pages of the C++ library and of the plugin for Unreal compile, and those that are whole run."""

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from sdk.contract.packages import SDK
from sdk.contract.runner import play
from tests.kit.long_tests import takes_long

DOCS = Path(__file__).parents[2] / "docs/sdk"
CPP, UNREAL = SDK / "cpp", SDK / "unreal/build"
BLOCK = re.compile(r"^``(\S+)``:\n\n\.\. code-block:: \w+\n\n((?:   .*\n|\n)+)", re.MULTILINE)
COMPILER = ("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror")
LIMIT_S = 600
needs_cpp = pytest.mark.skipif(
    not (CPP / "build/libsso_server.a").exists(), reason="the package cpp is not built: run scripts/sdk"
)
needs_unreal = pytest.mark.skipif(
    not (UNREAL / "test/headers").exists(), reason="the package unreal is not built: run scripts/sdk"
)


def write_files(page: str, folder: Path) -> list[str]:
    """Writes the files of a page, and returns their names."""
    files = {name: textwrap.dedent(text) for name, text in BLOCK.findall((DOCS / page).read_text())}
    for name, text in files.items():
        (folder / name).write_text(text)
    return list(files)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_cpp
def test_cpp_programs_of_the_page_compile_and_the_game_signs_in(tmp_path: Path) -> None:
    names = write_files("cpp.rst", tmp_path)
    assert {"CMakeLists.txt", "main.cpp", "menu.cpp", "qr.cpp", "storage.cpp", "server.cpp"} == set(names)
    headers = f"-I{CPP / 'include'}"
    parts = ("menu.cpp", "qr.cpp", "storage.cpp", "server.cpp")  # together, because compiling takes long
    (tmp_path / "parts.cpp").write_text("".join(f'#include "{name}"\n' for name in parts))
    run(tmp_path, *COMPILER, headers, "-fsyntax-only", "parts.cpp")
    libraries = ("-lcurl", "-lcrypto", "-lpthread")
    run(tmp_path, *COMPILER, headers, "main.cpp", str(CPP / "build/libsso_game.a"), *libraries, "-o", "my_game")
    # The program prints texts, which are no events; it keeps the rest of the scenario.
    factor = '"factor": "my first device"'
    scenario = (SDK / "contract/scenarios/stages.json").read_text().replace('"factor": "device-1"', factor)
    (tmp_path / "stages.json").write_text(scenario)
    problems = play("stages", ("env", "-C", str(tmp_path), "./my_game"), tmp_path).problems
    printed = [text for text in problems if text.startswith("the program printed")]
    assert "brave otter" in printed[1]
    assert printed[-1] == "the program printed 'Welcome, Demo!'"
    assert [text for text in problems if text not in printed and not text.endswith("is missing")] == []


@takes_long
@needs_cpp
def test_project_of_the_page_builds_with_a_copy_of_the_library(tmp_path: Path) -> None:
    write_files("cpp.rst", tmp_path)
    shutil.copytree(CPP, tmp_path / "sso", ignore=shutil.ignore_patterns("build"))
    run(tmp_path, "cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release")
    run(tmp_path, "cmake", "--build", "build")
    assert (tmp_path / "build/my_game").exists()


@needs_unreal
def test_unreal_code_of_the_page_compiles_with_stubs(tmp_path: Path) -> None:
    assert write_files("unreal.rst", tmp_path) == ["SignInMenu.cpp"]
    folders = (UNREAL / "test/headers", SDK / "unreal/test/stubs", UNREAL / "Sso/Source/Sso/Public")
    include = [f"-I{folder}" for folder in folders]
    run(tmp_path, *COMPILER, "-DSSO_API=", *include, "-fsyntax-only", "SignInMenu.cpp")
