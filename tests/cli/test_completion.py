"""Completion with the Tab key, which a variable in the environment asks for."""

import os
import subprocess
import sys


def test_bash_completion_offers_the_commands() -> None:
    words = {"COMP_WORDS": "sso cl", "COMP_CWORD": "1", "_SSO_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "sso"], env={**os.environ, **words}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["plain,client"]
