"""Completion with the Tab key, in the shells themselves. It needs no settings and no database."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from sso.cli import program


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With `sso` on the path, and settings that no command could use."""
    program = tmp_path / "bin" / "sso"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sso "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "SSO_WORKERS": "wrong", "TERM": "dumb"}


def run(command: list[str], environment: dict[str, str]) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: apt-get install {command[0]}")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


# The words before the cursor, and what is offered.
OFFERED = {
    "sso cl": ["client"],
    "sso user dis": ["disable"],
    "sso client add --prof": ["--profile"],
    "sso client add --profile o": ["oidc"],
    "sso completion f": ["fish"],
    "sso nothing": [],
}
IN_BASH = ("sso cl", "sso client add --profile o", "sso nothing")


@pytest.mark.parametrize("words", OFFERED)
def test_commands_options_and_choices_are_completed(words: str) -> None:
    completion = BashComplete(program, {}, "sso", "_SSO_COMPLETE")
    *arguments, incomplete = words.split()[1:]
    assert [item.value for item in completion.get_completions(arguments, incomplete)] == OFFERED[words]


def test_bash_registers_the_completion_and_completes_commands_and_choices(environment: dict[str, str]) -> None:
    script = """
        eval "$(sso completion bash)"
        complete -p sso
        for words in "$@"; do
            COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            _sso_completion sso
            printf '%s\\n' "$words: ${COMPREPLY[*]}"
        done
    """
    registered, *lines = run(["bash", "--norc", "-c", script, "bash", *IN_BASH], environment)
    assert registered.endswith("-F _sso_completion sso")
    assert lines == [f"{words}: {' '.join(OFFERED[words])}" for words in IN_BASH]


def test_fish_completes_commands_with_their_descriptions(environment: dict[str, str]) -> None:
    script = "sso completion fish | source; complete -C 'sso cl'; complete -C 'sso client add --profile o'"
    lines = run(["fish", "--no-config", "-c", script], environment)
    assert [line.partition("\t")[0] for line in lines] == ["client", "oidc"]
    assert lines[0].startswith("client\tManage OAuth clients")


def test_zsh_completes_commands_with_their_descriptions(environment: dict[str, str]) -> None:
    # zsh has no command that lists completions, so the function that would show them prints them.
    script = """
        autoload -U compinit && compinit -u -d "$HOME/dump"
        eval "$(sso completion zsh)"
        print -- ${_comps[sso]}
        _describe() { print -l -- ${(P)argv[-2]} }
        words=(sso cl) CURRENT=2
        _sso_completion
    """
    lines = run(["zsh", "-f", "-c", script], environment)
    assert lines[0] == "_sso_completion"
    assert lines[1].startswith("client:Manage OAuth clients")
