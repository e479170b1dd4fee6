"""The tests themselves: several processes run and report them like one, in an order that can be repeated."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.kit.file_order import new_seed, order_files, shuffle_tests

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.kit.processes import ProcessRunner, add_option as pytest_addoption

def pytest_configure(config):
    config.pluginmanager.register(ProcessRunner())
"""
FILE = """
import os, pytest

@pytest.fixture(scope="session")
def session_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("session")
    yield path
    print("closed", file=open({log!r}, "a"))

@pytest.mark.parametrize("number", range(20))
def test_passes(number, session_file, tmp_path):
    print("printed by a test that passes")
    assert tmp_path.is_relative_to(session_file.parent)

def test_fails():
    print("printed by", os.path.basename(__file__))
    assert not __file__

@pytest.mark.skip(reason="not today")
def test_is_skipped():
    raise AssertionError
"""
CRASHING = "import os\n\ndef test_crashes():\n    os._exit(3)\n"
ENDLESS = """
import pytest, time

@pytest.mark.parametrize("number", range(600))
def test_waits(number):
    time.sleep(0.2)
"""


def _run(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", *options]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "--processes", "3", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # other plugins take longer to import than the run
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_reports_of_all_processes_are_complete(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"test_{name}.py").write_text(FILE.format(log=str(log)))
    (tmp_path / "test_crash.py").write_text(CRASHING)
    output = _run(tmp_path)
    assert "5 failed, 80 passed, 4 skipped" in output
    for name in ("a", "b", "c", "d"):
        assert output.count(f"printed by test_{name}.py") == 1
    assert "by a test that passes" not in output
    assert "the process ended with the code 3" in output
    # Each process that has used the fixture closes it, except the one that has crashed.
    assert 1 <= len(log.read_text().splitlines()) <= 4


def test_first_failure_ends_all_processes(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_fails():\n    assert 0\n")
    for name in ("b", "c"):
        (tmp_path / f"test_{name}.py").write_text(ENDLESS)
    assert "1 failed" in _run(tmp_path, "-x", "-q")


def _order(names: list[str], seed: int) -> list[str]:
    items: Any = [SimpleNamespace(nodeid=name) for name in names]
    shuffle_tests(items, seed)
    order_files(items, seed)
    return [item.nodeid for item in items]


def test_order_is_random_and_can_be_repeated() -> None:
    files = [f"tests/folder{folder}/test_{number}.py" for folder in range(4) for number in range(5)]
    names = [f"{file}::test_{number}" for file in files for number in range(4)]
    orders = [_order(names, seed) for seed in (0, 7, 8)]
    assert orders == [_order(names, seed) for seed in (0, 7, 8)]
    assert orders[0] == names
    assert orders[1] != orders[2]
    for order in orders:
        assert sorted(order) == names
        for parts, count in ((3, 20), (2, 4)):  # the tests of a file, and the files of a folder, stay together
            places = [name.replace("::", "/").split("/")[:parts] for name in order]
            assert len(list(itertools.groupby(places))) == count
    assert new_seed() > 0
