"""Mutants that no test can notice, because they do the same as the module, with the reason for each."""

import json
from pathlib import Path

FILE = Path(__file__).parent / "equivalent.json"


def equivalent_mutants(module: str) -> set[str]:
    reasons: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return set(reasons.get(module, {}))
