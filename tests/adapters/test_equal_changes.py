"""Every operation has one home: whichever way a record is changed, the change leaves the same behind.

The specification's endpoints, the management API, documents of desired state, commands on this machine and on a server,
and the forms of the console are compared by the audit entries, the change events and the stored record.
"""

from zlib import crc32

import pytest

from tests.adapters.operation import Operation
from tests.adapters.operations import OPERATIONS
from tests.adapters.world import CommandPlace, Refused, Trace, Way, World
from tests.adapters.wrong_input import WRONG, WrongInput
from tests.kit.long_tests import usual_part

EXPECTED = "management API"  # the way that the others are compared with


def traced(world: World, operation: Operation, way: Way) -> Trace:
    case = world.case()
    operation.prepare(case)
    with world.recorded(case) as record:
        way(case)
    effect = case.masked(operation.effect(case))
    return Trace(case.masked(record["audit"]), case.masked(record["events"]), effect)


def usual_ways(operation: Operation) -> dict[str, Way]:
    """All ways in a long run, and otherwise the management API and one of the others, which differs by operation."""
    others = [item for item in operation.ways().items() if item[0] != EXPECTED]
    return {EXPECTED: operation.ways()[EXPECTED], **dict(usual_part(others, 1, crc32(operation.name.encode())))}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_change_leaves_the_same_behind_in_every_way(world: World, operation: Operation) -> None:
    traces = {name: traced(world, operation, way) for name, way in usual_ways(operation).items()}
    expected = traces.pop(EXPECTED)
    assert expected.audit
    different = [
        f"{part} of {name}: {getattr(trace, part)}, but of the management API: {getattr(expected, part)}"
        for name, trace in traces.items()
        for part in ("audit", "events", "effect")
        if getattr(trace, part) != getattr(expected, part)
    ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.operation.name)
def test_wrong_field_is_refused_alike_in_every_way(world: World, wrong: WrongInput) -> None:
    errors = {name: refusal(world, wrong.operation, way) for name, way in usual_ways(wrong.operation).items()}
    expected = errors[EXPECTED].removeprefix(f"{wrong.field}: ")
    option = f"{wrong.option}: {expected}"
    texts: dict[str, str] = {
        "specification": f"{wrong.endpoint + '.' if wrong.endpoint else ''}{wrong.field}: {expected}",
        EXPECTED: f"{wrong.field}: {expected}",
        "document": f"{wrong.document}.{wrong.field}: {expected}",
        **dict.fromkeys(CommandPlace, option),
        "console": wrong.console or f"{expected[0].upper()}{expected[1:]}.",
    }
    assert errors == {name: texts[name] for name in errors}


def refusal(world: World, operation: Operation, way: Way) -> str:
    """Returns the error text. A refused change leaves nothing behind."""
    case = world.case()
    operation.prepare(case)
    with world.recorded(case) as record, pytest.raises(Refused) as refused:
        way(case)
    assert record == {"audit": [], "events": []}
    return str(case.masked(str(refused.value)))
