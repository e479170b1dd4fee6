"""Prints the files of ``scripts/test --quick``: the tests of what was changed, then the shortest ones, for a minute."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.kit.file_order import TESTS, durations

BUDGET_S = 150.0  # of all files; five run at a time, and the start takes some seconds
SLOW = ("browser", "cluster", "cost", "deploy", "e2e", "examples", "faults", "races", "rp", "source")


def main() -> None:
    seconds = durations()
    left = BUDGET_S
    chosen: list[str] = []
    for file in dict.fromkeys([*_tests_of(_changed_files()), *sorted(_short_files(), key=lambda name: seconds[name])]):
        left -= seconds[file]
        if left < 0:
            break
        chosen.append(f"tests/{file}")
    print("\n".join(chosen))


def _changed_files() -> list[Path]:
    """Returns what differs from the last commit, and new files."""
    listed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,  # outside of a checkout nothing has changed
    ).stdout
    return [Path(line[3:]) for line in listed.splitlines()]


def _tests_of(changed: list[Path]) -> Iterator[str]:
    """Yields changed tests, and those that name a changed module or stand in the folder of its package."""
    yield from (str(path.relative_to("tests")) for path in changed if path.match("tests/**/test_*.py"))
    for path in changed:
        if path.parts[0] == "sso" and path.suffix == ".py":
            name = ".".join(path.with_suffix("").parts)
            yield from (file for file in _short_files() if name in (TESTS / file).read_text())
    packages = {path.parts[1] for path in changed if path.parts[0] == "sso" and len(path.parts) > 2}
    yield from (file for file in _short_files() if file.partition("/")[0] in packages)


def _short_files() -> list[str]:
    files = (path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py")))
    return [str(file) for file in files if file.parts[0] not in SLOW]


if __name__ == "__main__":
    main()
