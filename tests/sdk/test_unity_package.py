"""What the Unity package does without a service, with Mono: storage, QR codes, and answers that are too long."""

import json
import subprocess
from pathlib import Path

import pytest
import segno

from sdk.contract.packages import SDK
from tests.sdk.answering import answering

LINK = "https://sso.example.com/?gsid=0c7c0f0e-4f0e-4f5c-9d1f-6f8f2b0f7a11"
RUNNER, DRIVER = SDK / "unity/build/Runner.exe", SDK / "unity/build/Driver.exe"
pytestmark = pytest.mark.skipif(not RUNNER.exists(), reason="the package unity is not built: run scripts/sdk")


def run(*arguments: str) -> list[str]:
    done = subprocess.run(["mono", str(RUNNER), *arguments], capture_output=True, text=True, check=True, timeout=200)
    return done.stdout.splitlines()


def test_tests_of_the_package_pass() -> None:
    assert len(run()) == 13


@pytest.mark.parametrize(("size", "event"), [(1000, "signed_in"), (2_000_000, "failed")])
def test_long_answer_is_not_read(size: int, event: str, tmp_path: Path) -> None:
    answer = json.dumps({"status": "OK", "user_id": "1", "token": "t", "more": " " * size})
    with answering(lambda path: (200, answer)) as base_url:
        command = ["mono", str(DRIVER), base_url, str(tmp_path)]
        line = json.dumps({"do": "ticket", "provider": "steam", "ticket": "1", "factor": "d"})
        done = subprocess.run(command, input=line, capture_output=True, text=True, check=True, timeout=200)
    printed = json.loads(done.stdout)
    assert printed["event"] == event
    assert printed.get("reason", "unavailable") == "unavailable"


# A link, and texts at the end of the capacity of some versions.
@pytest.mark.parametrize("size", [0, 14, 67, 84, 106, 213])
def test_qr_code_is_that_of_another_library(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # segno fills a byte with padding bits even if it is complete, so that the padding bytes differ from the standard.
    monkeypatch.setattr(segno.encoder, "write_padding_bits", lambda bits, _, length: bits.extend([0] * (-length % 8)))
    text = (LINK * 4)[:size] or "é" + LINK
    drawn = run(text)

    def is_drawn_with(mask: int) -> bool:
        code = segno.make_qr(text, mask=mask, error="m", mode="byte", boost_error=False, encoding="utf-8")
        return ["".join(map(str, row)) for row in code.matrix] == drawn

    # Both choose one of eight masks; a reader accepts each of them.
    assert len([mask for mask in range(8) if is_drawn_with(mask)]) == 1
