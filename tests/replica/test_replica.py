"""A replica gives the answers of the service, whatever changes."""

from random import Random

import pytest

from tests.replica.conftest import Game


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_replica_answers_like_the_service_after_random_changes(game: Game, seed: int) -> None:
    random = Random(seed)
    with game.replica() as replica:
        game.assert_equal(replica, "at first")
        history = []
        for _ in range(40):
            history.append(game.change(random))
            game.assert_equal(replica, "\n".join(history))
