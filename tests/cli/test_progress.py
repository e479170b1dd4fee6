"""Progress of commands: one line on a terminal, nothing elsewhere."""

import subprocess
import sys
from pathlib import Path

import orjson

from tests.kit.server import clean_environment
from tests.kit.terminal import run_on_terminal, run_sso_on_terminal

CLEARED = "\r\x1b[K"
PROGRAM = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from sso.cli.progress import Progress

class Waiting(Progress):
    shown = threading.Event()

    def show(self, text):
        super().show("some time")
        self.shown.set()

with Progress("counting") as counting:
    counting.count(1000, 2000)
with Waiting("waiting") as waiting, ThreadPoolExecutor(1) as pool:
    result = waiting.wait(pool.submit(lambda: waiting.shown.wait(60) and "done"))
print(result, flush=True)
with Progress("x" * 500) as long:
    long.bytes(1_500_000, 3_000_000)
    sys.exit("failed")
"""


def test_progress_is_shown_on_a_terminal_and_disappears_before_other_output() -> None:
    code, output = run_on_terminal([sys.executable, "-c", PROGRAM], clean_environment())
    assert code == 1
    parts = output.split(CLEARED)
    # Under load, the waiting line may be written more than once.
    assert [part for number, part in enumerate(parts) if part not in parts[:number]] == [
        "",
        "counting: 1,000 of 2,000",
        "waiting: some time",
        "done\n",
        "x" * 79,  # cut to the width of the terminal
        "failed\n",
    ]


def test_progress_writes_nothing_to_a_pipe() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "failed\n")


def test_apply_shows_the_number_of_stored_records(environment: dict[str, str], tmp_path: Path) -> None:
    document = tmp_path / "users.json"
    document.write_bytes(orjson.dumps({"users": [{"login": f"u{number}@example.com"} for number in range(3)]}))
    with document.open("rb") as file:
        code, output = run_sso_on_terminal(["apply", "-"], clean_environment(**environment), stdin=file)
    assert code == 0
    assert output.startswith(f"{CLEARED}applying standard input: storing records, 1 of 3")
    assert output.endswith(f"{CLEARED}created 3, changed 0, unchanged 0\n")
