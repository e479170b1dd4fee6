"""The clients of a history. Each repeats its work until it is told to stop; several run at once, at both nodes."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import httpx

from tests.histories.account_actors import (
    accept_invitation,
    guess_codes,
    reset_password,
    use_recovery_code,
    use_ticket,
)
from tests.histories.oauth_actors import play, reuse_refresh_token, use_device, use_site
from tests.histories.permission_actors import (
    create_keys,
    disable,
    grant,
    join_project,
    publish,
    remove_roots,
    take_role,
)
from tests.histories.world import MEMBERS, PROJECTS, World

PAUSE_S = 0.02

Work = Callable[[World, int], None]
ACTORS: dict[str, Work] = {
    "use_site-1": use_site,
    "use_site-2": use_site,
    "play-1": play,
    "play-2": play,
    "use_device": use_device,
    "reuse_refresh_token": reuse_refresh_token,
    "use_recovery_code": use_recovery_code,
    "reset_password": reset_password,
    "accept_invitation": accept_invitation,
    "guess_codes": guess_codes,
    "use_ticket": use_ticket,
    "take_role-1": partial(take_role, MEMBERS[::2]),
    "take_role-2": partial(take_role, MEMBERS[1::2]),
    "join_project-1": partial(join_project, PROJECTS[0], MEMBERS[::2]),
    "join_project-2": partial(join_project, PROJECTS[1], MEMBERS[1::2]),
    "create_keys": create_keys,
    "publish": publish,
    "disable-1": disable,
    "disable-2": disable,
    "grant": grant,
    "remove_roots": remove_roots,
}


class Actor(threading.Thread):
    """A client. What breaks its work, such as a page that is not answered, makes it begin anew."""

    def __init__(self, name: str, world: World, work: Work, stopping: threading.Event, pause_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self._world, self._work, self._stopping, self._pause_s = world, work, stopping, pause_s
        self.rounds = 0
        self.interruptions: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            self.rounds += 1
            try:
                self._work(self._world, self.rounds)
            except (httpx.HTTPError, AssertionError, KeyError) as error:
                self.interruptions[f"{type(error).__name__} {str(error).splitlines()[:1]}"] += 1


@contextmanager
def acting(world: World, pause_s: float = PAUSE_S) -> Iterator[list[Actor]]:
    """Runs all clients, with a pause between two rounds of each. At the end, each finishes its round."""
    stopping = threading.Event()
    actors = [Actor(name, world, work, stopping, pause_s) for name, work in ACTORS.items()]
    for actor in actors:
        actor.start()
    try:
        yield actors
    finally:
        stopping.set()
        for actor in actors:
            actor.join()
