"""Random sequences of calls to a real server, whose answers small models of the state predict."""

import itertools
import sys
import traceback

from scripts.proofs.part import Deadline, PartResult, Progress
from tests.models.machine import STEPS, ServiceMachine, check_model, own_server
from tests.models.test_account import Account
from tests.models.test_game_session import GameSession
from tests.models.test_management_api import ManagementApi
from tests.models.test_oauth_grant import OAuthGrant
from tests.models.test_permissions import Permissions

EXAMPLES = 3  # of a model, before the next one's turn
MODELS: tuple[type[ServiceMachine], ...] = (OAuthGrant, GameSession, Account, Permissions, ManagementApi)


def run(minutes: float, progress: Progress) -> PartResult:
    deadline = Deadline(minutes)
    result = PartResult(
        invariants=[(sys.modules[model.__module__].__doc__ or "").partition("\n")[0] for model in MODELS],
        figures=[{"Model": model.__name__, "Sequences": 0} for model in MODELS],
    )
    with own_server() as server:
        for model, figures in itertools.cycle(zip(MODELS, result.figures, strict=True)):
            progress(f"{deadline}: {model.__name__}, {result.rounds} sequences of up to {STEPS} calls …")
            try:
                check_model(model, server, EXAMPLES)
            except Exception as error:
                result.violations.append(_description(model, error))
            result.rounds += EXAMPLES
            figures["Sequences"] += EXAMPLES
            if result.violations or (deadline.is_over and result.rounds >= EXAMPLES * len(MODELS)):
                return result
    raise AssertionError


def _description(model: type[ServiceMachine], error: Exception) -> str:
    """Prints the program that repeats the failure, and returns one line."""
    print("\n".join(traceback.format_exception(error)))
    return f"{model.__name__}: {type(error).__name__}: {error}"
