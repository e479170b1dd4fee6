"""The console has a sentence for every operation that the source writes to the audit trail."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import sso
from sso.console.audit.sentences import has_sentence

OPERATION = re.compile(r"[a-z_]+(\.[a-z0-9_]+)+")


def audited_operations() -> Iterator[str]:
    """The operations that calls of `trail.write`, and of functions named after it, have in the code."""
    for path in Path(sso.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and re.search(r"trail\.write$|(^|\.)_audit\w*$", ast.unparse(call.func)):
                for node in (inner for argument in call.args for inner in ast.walk(argument)):
                    if isinstance(node, ast.Constant) and OPERATION.fullmatch(str(node.value)):
                        yield str(node.value)


def test_every_audited_operation_has_a_sentence() -> None:
    operations = set(audited_operations())
    assert len(operations) > 50
    assert {operation for operation in operations if not has_sentence(operation)} == set()
