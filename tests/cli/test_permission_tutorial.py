"""Runs the commands in docs/first_permission.rst, in the order of the page, on a new database."""

import os
import re
from pathlib import Path

from tests.kit.terminal import run_sso_on_terminal

PAGE = Path(__file__).parents[2] / "docs" / "first_permission.rst"
COMMAND = re.compile(r"^    \$ (sso .*)\n((?:    (?!\$ ).*\n)*)", re.M)
# One process runs all commands, because each start of Python takes longer than a command.
PROGRAM = """
import shlex, sys
from sso.cli import main
for command in sys.argv[1:]:
    print("$", command, flush=True)
    sys.argv = shlex.split(command)
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def pattern(expected: str) -> str:
    """The regular expression of an output in which … stands for values that differ from run to run."""
    return "".join(re.escape(line[4:]).replace("…", r"\S+") + "\n" for line in expected.splitlines())


def test_commands_of_the_page_print_what_it_shows(environment: dict[str, str], tmp_path: Path) -> None:
    examples = COMMAND.findall(PAGE.read_text())
    assert len(examples) == PAGE.read_text().count("    $ ") >= 15
    script = tmp_path / "commands.py"
    script.write_text(PROGRAM)
    with Path(os.devnull).open("rb") as nothing:  # no terminal that asks for passwords: they are generated
        code, output = run_sso_on_terminal(
            [command for command, _ in examples],
            {"PATH": os.environ["PATH"], "TERM": "dumb", **environment},
            stdin=nothing,
            script=str(script),
        )
    shown = "".join(f"    $ {command}\n{expected}" for command, expected in examples)
    assert code == 0, output
    assert re.fullmatch(pattern(shown), output), output
