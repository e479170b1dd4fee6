"""What the Unity package does without a service: storage and QR codes, with Mono."""

import subprocess

import pytest
import segno

from sdk.contract.packages import SDK

RUNNER = SDK / "unity/build/Runner.exe"
pytestmark = pytest.mark.skipif(not RUNNER.exists(), reason="the package unity is not built: run scripts/sdk")


def run(*arguments: str) -> list[str]:
    done = subprocess.run(["mono", str(RUNNER), *arguments], capture_output=True, text=True, check=True, timeout=200)
    return done.stdout.splitlines()


def test_tests_of_the_package_pass() -> None:
    assert len(run()) == 4


@pytest.mark.parametrize("length", [10, 67, 130, 213])
def test_qr_code_is_that_of_another_library(length: int) -> None:
    text = ("https://sso.example.com/?gsid=0c7c0f0e-4f0e-4f5c-9d1f-6f8f2b0f7a11&words=" + "\u00fc" * 20 + "x" * 200).encode()
    link = text[:length].decode(errors="ignore")
    options = {"error": "m", "mode": "byte", "boost_error": False, "encoding": "utf-8"}
    codes = [segno.make_qr(link, mask=mask, **options) for mask in range(8)]
    assert run(link) in [["".join(map(str, row)) for row in code.matrix] for code in codes]
