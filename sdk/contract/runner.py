"""Plays the scenarios with the test program of a package: ``python -m sdk.contract.runner PROGRAM SCENARIO.json…``."""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from sso.cli.play.scripted.script import Script, read_script
from sso.cli.play.scripted.service import ScriptedService

SCENARIOS = Path(__file__).parent / "scenarios"
SERVER_SCENARIOS = Path(__file__).parent / "server"
LIMIT_S = 300.0  # of a run of the program: Mono takes a while to make a key, and the machine may be slow
RunCommand = Callable[[Sequence[str], str], Awaitable[subprocess.CompletedProcess[str]]]


@dataclass(frozen=True)
class Outcome:
    scenario: str
    problems: list[str]  # none: the package keeps the contract


def scenario_names(folder: Path = SCENARIOS) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.json"))


async def run_command(command: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
    done = await trio.run_process(command, stdin=stdin.encode(), capture_stdout=True, capture_stderr=True, check=False)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def play(name: str, program: Sequence[str], folder: Path = SCENARIOS, run: RunCommand = run_command) -> Outcome:
    """Plays one scenario with the command of a test program."""
    return trio.run(_play, folder / f"{name}.json", program, run)


async def _play(file: Path, program: Sequence[str], run: RunCommand = run_command) -> Outcome:
    script = read_script(file)
    service = ScriptedService(script)
    with tempfile.TemporaryDirectory() as folder:
        async with trio.open_nursery() as nursery:
            base_url = await nursery.start(service.serve)
            events, problems = await _run_program(script, [*program, base_url, folder], run)
            nursery.cancel_scope.cancel()
    problems += service.violations
    if not service.is_over:
        problems.append(f"{service.next_request} was expected and did not come")
    expected = json.loads(json.dumps(script.events).replace("{base_url}", base_url))
    return Outcome(file.stem, problems + compare_events(expected, events))


async def _run_program(
    script: Script, command: Sequence[str], run: RunCommand
) -> tuple[list[dict[str, Any]], list[str]]:
    """Runs the program once for each run of the scenario. Returns its events, and what else it printed."""
    events: list[dict[str, Any]] = []
    problems: list[str] = []
    for commands in script.runs:
        stdin = "".join(json.dumps(item) + "\n" for item in commands)
        with trio.move_on_after(LIMIT_S) as limit:
            done = await run(command, stdin)
            if done.returncode != 0:
                problems.append(f"the program ended with {done.returncode}: {done.stderr[-500:]}")
            for line in done.stdout.splitlines():
                try:
                    events.append(json.loads(line))
                except ValueError:
                    problems.append(f"the program printed {line!r}")
        if limit.cancelled_caught:
            problems.append(f"the program did not end within {LIMIT_S:.0f} s")
    return events, problems


def compare_events(expected: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]]) -> list[str]:
    """An event may have more members than are expected."""
    problems = [
        f"event {number}: {got} instead of {want}"
        for number, (want, got) in enumerate(zip(expected, found, strict=False), 1)
        if not _contains(got, want)
    ]
    problems += [f"the event {want} is missing" for want in expected[len(found) :]]
    return problems + [f"the event {got} was not expected" for got in found[len(expected) :]]


def _contains(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(name in found and _contains(found[name], value) for name, value in expected.items())
    return bool(found == expected)


def main(program: str, files: Sequence[str]) -> int:
    """Prints the outcome of each scenario. Returns 1 if the program breaks the contract."""
    outcomes = [trio.run(_play, Path(file), shlex.split(program)) for file in files]
    for outcome in outcomes:
        print("\n    ".join((f"{outcome.scenario}: {'kept' if not outcome.problems else 'broken'}", *outcome.problems)))
    return int(any(outcome.problems for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
