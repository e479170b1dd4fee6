"""Faults that are planted in a copy of the program. A checker that finds nothing then is of no use."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.histories.actors import acting
from tests.histories.invariants import violations
from tests.histories.world import world
from tests.kit.server import until

FOUND_S = 120.0  # on a machine that is very slow
SOURCE = Path(__file__).parents[2] / "sso"


@dataclass(frozen=True)
class PlantedFault:
    """A text of a module that is replaced, and the beginning of the violation that the checker must find."""

    name: str
    module: str
    old: str
    new: str
    violation: str

    def program(self, folder: Path) -> tuple[str, ...]:
        """Returns the command that runs a copy of the program with the fault."""
        copy = folder / "sso"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        module = copy / self.module
        text = module.read_text()
        assert text.count(self.old) == 1, f"{self.module} has changed: {self.old!r} occurs {text.count(self.old)} times"
        module.write_text(text.replace(self.old, self.new))
        start = folder / "run.py"
        start.write_text("from sso.cli import main\n\nmain()\n")  # a program finds modules in its own folder first
        return (sys.executable, str(start))

    def is_found(self, folder: Path) -> bool:
        """Runs the program with the fault until the checker finds it. Returns False if that takes too long."""
        with world(folder / "nodes", self.program(folder)) as running:

            def found() -> bool:
                return any(text.startswith(self.violation) for text in violations(running))

            with acting(running):
                until(found, FOUND_S)
            return found()


PLANTED_FAULTS = (
    PlantedFault(
        "a code is redeemed twice",
        "oauth/tokens/statements.py",
        "k.digest = s.digest AND k.redeemed IS NULL AND s.is_redeemable",
        "k.digest = s.digest AND s.is_redeemable",
        "redeem: ",
    ),
    PlantedFault(
        "a code is refused at once",
        "oauth/tokens/statements.py",
        "ON k.digest = item.digest AND k.expires > now()",
        "ON k.digest = item.digest AND k.expires < now()",
        "redeem: ",
    ),
    PlantedFault(
        "a refresh token is used twice",
        "oauth/tokens/statements.py",
        "g.id = s.grant_id AND g.head = s.token_id\n",
        "g.id = s.grant_id\n",
        "refresh: ",
    ),
    PlantedFault(
        "a revoked grant goes on",
        "oauth/tokens/revocation.py",
        "        if only_current:\n",
        "        if only_current:\n            return True\n",
        "use_access_token: ",
    ),
    PlantedFault(
        "a recovery code is used twice",
        "accounts/second_factor/store.py",
        "DELETE FROM recovery_codes WHERE user_id = :user_id AND digest = :digest RETURNING digest",
        "SELECT digest FROM recovery_codes WHERE user_id = :user_id AND digest = :digest",
        "recover: ",
    ),
    PlantedFault(
        "a role has too many users",
        "perm/stores/user_limits.py",
        "> max(limit, before[name])",
        "> max(limit + 1, before[name])",
        "4 members at once",
    ),
    PlantedFault(
        "the last administrator goes",
        "perm/changes/last_administrators.py",
        "            self.administered = await read_root_administration(tx)\n",
        "            pass\n",
        "remove_root: ",
    ),
    PlantedFault(
        "a change is missing in the stream",
        "accounts/disabling.py",
        'if "disabled" in before:',
        'if "disabled" in before and int(user_id) % 5:',
        "stream: ",
    ),
)
