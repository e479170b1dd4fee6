"""The table of modules and tests, and the parts of the runner."""

import ast
import json
import types
from pathlib import Path

from tests.mutants.exchange import install
from tests.mutants.mutations import mutants
from tests.mutants.runner import description
from tests.mutants.survivors import FILE
from tests.mutants.table import MODULES

ROOT = Path(__file__).parents[2]


def test_modules_and_tests_exist() -> None:
    for module, tests in MODULES.items():
        assert (ROOT / module).is_file(), module
        assert all((ROOT / test).exists() for test in tests), module


def test_equivalent_mutants_exist_and_have_a_reason() -> None:
    for module, reasons in json.loads(FILE.read_text()).items():
        source = (ROOT / module).read_text()
        known = {description(source, mutant) for mutant in mutants(source)}
        assert reasons.keys() <= known, module
        assert all(len(reason) > 20 for reason in reasons.values()), module


def test_mutants_of_a_function() -> None:
    source = (
        "def f(a: int = 1) -> bool:\n    if a < 2 and not a:\n        raise ValueError('text')\n    return a == 3\n"
    )
    changes = [ast.unparse(mutant.tree).splitlines() for mutant in mutants(source)]
    assert len(changes) == len({tuple(lines) for lines in changes}) == 12
    assert ["def f(a: int=1) -> bool:", "    if a <= 2 and (not a):"] in [lines[:2] for lines in changes]


def test_mutant_takes_the_place_of_functions_that_were_imported() -> None:
    source = "LIMIT = 3\nclass C:\n    def m(self):\n        return 1\ndef f():\n    return LIMIT\n"
    module = types.ModuleType("m")
    exec(source, module.__dict__)
    f, instance = module.__dict__["f"], module.__dict__["C"]()
    install(module, ast.parse(source.replace("3", "4").replace("return 1", "return 2")))
    assert (f(), instance.m()) == (4, 2)


def test_mutant_of_a_record_changes_its_methods_and_leaves_its_fields() -> None:
    fields = "from msgspec import Struct\nclass R(Struct, frozen=True):\n    a: int = 1\n"
    source = f"{fields}    def m(self):\n        return self.a\n"
    assert [mutant.line for mutant in mutants(source)] == [5]
    module = types.ModuleType("m")
    exec(source, module.__dict__)
    record = module.__dict__["R"](5)
    install(module, ast.parse(source.replace("self.a", "-self.a")))
    assert (record.a, record.m()) == (5, -5)
