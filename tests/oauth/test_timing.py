"""How much of a wrong bearer is right must not be told by the time the answer takes.

An ordinary run only goes through the motions: on a machine that does other things too, a time proves nothing.
TIMING_SAMPLES=5000 for the long one, on a quiet machine, which judges the times.
"""

import math
import os
import random
import statistics
import time
from collections.abc import Callable

import pytest

from sso.oauth.client_auth import ClientCredentials, authenticate_client, sha1_bearer
from sso.oauth.model import Client
from tests.kit.oauth import Browser, Site
from tests.oauth.shop import SECRET, URI

SAMPLES = int(os.environ.get("TIMING_SAMPLES", "0"))
MOST_T = 4.5  # of Welch's test: by chance once in a hundred thousand times
SHARED = (0, 1, 20, 39)
pytestmark = pytest.mark.timeout(120 + SAMPLES)

CLIENT = Client("shop", "", (), (), "strict", "", False, False, False, "sealed", None)


def wrong(right: str, shared: int) -> str:
    """A bearer whose first characters are right, and the next one is not."""
    other = "0" if right[shared] != "0" else "1"
    return right[:shared] + other + "".join(random.choices("0123456789abcdef", k=39 - shared))


def welch(ours: list[float], theirs: list[float]) -> float:
    """Without the slowest tenth: what the machine did meanwhile is not what is asked for."""
    ours, theirs = (sorted(times)[: max(2, len(times) * 9 // 10)] for times in (ours, theirs))
    spread = statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs)
    return (statistics.mean(ours) - statistics.mean(theirs)) / math.sqrt(spread or 1e-30)


def measure(right: str, attempt: Callable[[str], None], samples: int) -> dict[int, float]:
    """By how many characters are right: how far its times are from those of bearers that have none right."""
    times: dict[int, list[float]] = {shared: [] for shared in SHARED}
    none: dict[int, list[float]] = {shared: [] for shared in SHARED}
    for _ in range(samples):
        for shared in random.sample(SHARED, len(SHARED)):
            pair = [(times[shared], wrong(right, shared)), (none[shared], wrong(right, 0))]
            for kept, bearer in random.sample(pair, 2):
                began = time.perf_counter()
                attempt(bearer)
                kept.append(time.perf_counter() - began)
    return {shared: welch(times[shared], none[shared]) for shared in SHARED}


def judge(found: dict[int, float]) -> None:
    print({shared: round(t, 2) for shared, t in found.items()})
    if SAMPLES:
        assert max(abs(t) for t in found.values()) < MOST_T, found


def test_the_comparison_itself() -> None:
    def attempt(bearer: str) -> None:
        assert authenticate_client(CLIENT, [(SECRET, "sealed")], ClientCredentials(bearer=bearer), URI) is None

    judge(measure(sha1_bearer(URI, SECRET).decode(), attempt, (SAMPLES or 5) * 4))


def test_the_answer_over_the_wire(site: Site, browser: Browser) -> None:
    """With a refresh token, which no number of wrong bearers uses up."""
    token = site.tokens(browser)["refresh_token"]

    def attempt(bearer: str) -> None:
        assert site.refresh(token, headers={"Authorization": f"Bearer {bearer}"}).status_code == 401

    judge(measure(site.bearer()["Authorization"].removeprefix("Bearer "), attempt, SAMPLES or 5))
    assert site.refresh(token).status_code == 200
