"""What the scenarios of the contract cannot show of the TypeScript package without long waits."""

import subprocess

import pytest

from sdk.contract.packages import SDK

TYPESCRIPT = SDK / "typescript"


def test_units_of_the_typescript_package() -> None:
    if not (TYPESCRIPT / "dist/index.js").exists():
        pytest.skip("the package typescript is not built: run scripts/sdk")
    command = ["node", "--test", str(TYPESCRIPT / "test/units.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
