"""What the contract does not reach of the Unreal plugin: a player who signs out while a sign-in runs."""

import json
import subprocess
from pathlib import Path

import pytest

from sdk.contract.packages import SDK
from tests.sdk.answering import signing_out

DRIVER = SDK / "unreal/build/test/sso_unreal_driver"


@pytest.mark.skipif(not DRIVER.exists(), reason="the package unreal is not built: run scripts/sdk")
def test_sign_out_is_not_undone_by_a_sign_in_that_still_runs(tmp_path: Path) -> None:
    commands = [
        {"do": "ticket", "provider": "steam", "ticket": "1", "factor": "d"},
        {"do": "sign_in", "sign_out_after": "show_link"},
        {"do": "resume"},
    ]
    with signing_out() as (base_url, paths):
        lines = "\n".join(json.dumps(command) for command in commands)
        run = [str(DRIVER), base_url, str(tmp_path)]
        done = subprocess.run(run, input=lines, capture_output=True, text=True, check=True, timeout=200)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [("signed_in", ""), ("show_link", ""), ("failed", "cancelled"), ("failed", "sign_in_needed")]
    assert [(event["event"], event.get("reason", "")) for event in events] == expected
    assert "/proxy/api/logout" in paths
