"""The response time does not reveal how many characters of a wrong bearer are right.

A usual run only executes the code, because times are not reliable on a busy machine. TIMING_SAMPLES=5000, on a quiet
machine, also compares the times.
"""

import os
import random
import time
from collections.abc import Callable

import pytest

from sso.oauth.clients.authentication import ClientCredentials, authenticate_client, sha1_bearer
from sso.oauth.model import Client
from tests.kit.oauth import Browser, Site
from tests.kit.timing import welch
from tests.oauth.in_process import SECRET, URI

SAMPLES = int(os.environ.get("TIMING_SAMPLES", "0"))
MAX_T = 4.5  # of Welch's test; exceeded by chance once in a hundred thousand times
SHARED = (0, 1, 20, 39)
pytestmark = pytest.mark.timeout(120 + SAMPLES)

CLIENT = Client("shop", "", (), (), "strict", "", False, False, False, "sealed", None)


def wrong_bearer(right: str, shared: int) -> str:
    """Returns a bearer of which only the first ``shared`` characters are right."""
    other = "0" if right[shared] != "0" else "1"
    return right[:shared] + other + "".join(random.choices("0123456789abcdef", k=39 - shared))


def measure(right: str, attempt: Callable[[str], None], samples: int) -> dict[int, float]:
    """Returns, by the number of right characters, the t of their times against those of bearers with none right."""
    times: dict[int, list[float]] = {shared: [] for shared in SHARED}
    none: dict[int, list[float]] = {shared: [] for shared in SHARED}
    for _ in range(samples):
        for shared in random.sample(SHARED, len(SHARED)):
            pair = [(times[shared], wrong_bearer(right, shared)), (none[shared], wrong_bearer(right, 0))]
            for samples_of, bearer in random.sample(pair, 2):
                began = time.perf_counter()
                attempt(bearer)
                samples_of.append(time.perf_counter() - began)
    return {shared: welch(times[shared], none[shared]) for shared in SHARED}


def assert_constant_time(t_values: dict[int, float]) -> None:
    print({shared: round(t, 2) for shared, t in t_values.items()})
    if SAMPLES:
        assert max(abs(t) for t in t_values.values()) < MAX_T, t_values


def test_bearer_comparison_takes_constant_time() -> None:
    def attempt(bearer: str) -> None:
        assert authenticate_client(CLIENT, [(SECRET, "sealed")], ClientCredentials(bearer=bearer), URI) is None

    assert_constant_time(measure(sha1_bearer(URI, SECRET).decode(), attempt, (SAMPLES or 5) * 4))


def test_response_time_does_not_reveal_the_bearer(site: Site, browser: Browser) -> None:
    """Uses a refresh token, which stays valid after any number of wrong bearers."""
    token = site.tokens(browser)["refresh_token"]

    def attempt(bearer: str) -> None:
        assert site.refresh(token, headers={"Authorization": f"Bearer {bearer}"}).status_code == 401

    assert_constant_time(measure(site.bearer()["Authorization"].removeprefix("Bearer "), attempt, SAMPLES or 5))
    assert site.refresh(token).status_code == 200
