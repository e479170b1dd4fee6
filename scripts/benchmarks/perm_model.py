"""The model by which permission engines are compared: users who have three of ten roles, and all questions about them.

A role gives the five rules of its own area. The 50 questions about a user are all areas with all rules; 15 of the
answers are yes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

ROLES, RULES, HELD = 10, 5, 3
PAIRS = tuple((area, rule) for area in range(ROLES) for rule in range(RULES))


class PeerUser(NamedTuple):
    user_id: str
    roles: Sequence[int]


@dataclass(frozen=True)
class PeerModel:
    users: Sequence[PeerUser]

    @classmethod
    def of(cls, user_ids: Sequence[str]) -> "PeerModel":
        held = [[(number + step) % ROLES for step in range(HELD)] for number in range(len(user_ids))]
        return cls([PeerUser(user_id, roles) for user_id, roles in zip(user_ids, held, strict=True)])

    @property
    def answers(self) -> list[bool]:
        """The right answers, for each user to the questions of `PAIRS`."""
        return [area in user.roles for user in self.users for area, _ in PAIRS]

    def json(self, **more: Any) -> bytes:
        return orjson.dumps({"users": [tuple(user) for user in self.users], "roles": ROLES, "rules": RULES, **more})


class PeerCosts(NamedTuple):
    """CPU seconds of one question: if each has its own call, and if a call has all 50 questions about a user."""

    one: float
    of_many: float

    def row(self, engine: str) -> dict[str, Any]:
        return {
            "what": f"check: {engine}",
            "roles": ROLES,
            "us": self.one * 1e6,
            "per second": 1 / self.one,
            "us of 50": self.of_many * 1e6,
            "50s per second": 1 / self.of_many,
        }


class WrongAnswers(SystemExit):
    """An engine that answers other questions must not be compared."""


def require_equal(model: PeerModel, engine: str, answers: Sequence[bool]) -> None:
    if list(answers) != model.answers:
        raise WrongAnswers(f"{engine} gives other answers")


def repeat(work: Callable[[], object], seconds: float) -> float:
    """Returns the CPU seconds of one call."""
    count, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for _ in range(20):
            work()
        count += 20
    return (time.process_time() - started) / count


def measure_in_process(
    model: PeerModel,
    engine: str,
    ask_one: Callable[[PeerUser, int, int], bool],
    ask_all: Callable[[PeerUser], Sequence[bool]],
    seconds: float,
) -> dict[str, Any]:
    """Compares the answers of both forms, then measures each with one user after the other."""
    require_equal(model, engine, [ask_one(user, *pair) for user in model.users for pair in PAIRS])
    require_equal(model, engine, [answer for user in model.users for answer in ask_all(user)])
    turn = [0]

    def next_user() -> PeerUser:
        turn[0] += 1
        return model.users[turn[0] % len(model.users)]

    one = repeat(lambda: ask_one(next_user(), *PAIRS[turn[0] % len(PAIRS)]), seconds)
    return PeerCosts(one, repeat(lambda: ask_all(next_user()), seconds) / len(PAIRS)).row(engine)
