"""The supervisor with real processes.

Each test runs a short script; its children write what happens to them into a diary, one line an event. The order of
the lines is the order of the events, because each is one append.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import sso
from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor

DEADLINE_S = 15.0

STAGE = '''
import os, signal, sys, time
from pathlib import Path
from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor

def note(*words):
    diary = os.open("diary", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(diary, (" ".join(map(str, words)) + "\\n").encode())
    os.close(diary)

def serve(name, linger=0.0, code=0):
    """Serves until SIGTERM, then takes its time and leaves with the code."""
    def run(ready, number):
        def leave(*_):
            note(name, "term", os.getpid())
            time.sleep(linger)
            note(name, "gone", os.getpid())
            raise SystemExit(code)
        signal.signal(signal.SIGTERM, leave)
        note(name, "up", os.getpid())
        ready()
        while True:
            signal.pause()
    return run

def fail(name, code=1):
    def run(ready, number):
        note(name, "try", time.monotonic())
        raise SystemExit(code)
    return run

def stuck(name):
    def run(ready, number):
        signal.signal(signal.SIGTERM, lambda *_: note(name, "term", os.getpid()))
        note(name, "up", os.getpid())
        ready()
        while True:
            signal.pause()
    return run
'''


class Show:
    """A running supervisor script and its diary."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        (folder / "stage.py").write_text(STAGE)
        (folder / "script.py").write_text(f"from stage import *\n{script}\n")
        (folder / "log").touch()
        (folder / "diary").touch()
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "script.py"],
                cwd=folder,
                env={"PATH": os.defpath, "PYTHONPATH": str(Path(sso.__file__).parents[1]), "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def diary(self, *words: str) -> list[list[str]]:
        """The lines that begin with these words."""
        lines = [line.split() for line in (self.folder / "diary").read_text().splitlines()]
        return [line for line in lines if line[: len(words)] == list(words)]

    def pids(self, *words: str) -> list[int]:
        return [int(line[-1]) for line in self.diary(*words)]

    def until(self, happened: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not happened():
            if time.monotonic() > deadline:
                pytest.fail(f"did not happen\n{self.diary()}\n{self.log}")
            time.sleep(0.01)

    def tell(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def exit_code(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running\n{self.diary()}\n{self.log}")

    def stop(self) -> int:
        self.tell(signal.SIGTERM)
        return self.exit_code()


Stage = Callable[[str], Show]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    shows: list[Show] = []

    def begin(script: str) -> Show:
        shows.append(Show(tmp_path, script))
        return shows[-1]

    yield begin
    for show in shows:
        if show.process.poll() is None:
            # Twice, so that it kills its children before it goes.
            show.tell(signal.SIGTERM)
            time.sleep(0.2)
            show.tell(signal.SIGTERM)
            show.exit_code()


def test_starts_in_order_and_says_ready_once(stage: Stage) -> None:
    show = stage("""
def slow(ready, number):
    time.sleep(0.3)
    serve("database")(ready, number)
roles = [ChildRole("database", slow), ChildRole("worker", serve("worker"), count=2)]
sys.exit(Supervisor(roles, on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    assert [line[0] for line in show.diary()] == ["database", "worker", "worker", "ready"]
    os.kill(show.pids("worker", "up")[0], signal.SIGKILL)
    show.until(lambda: len(show.pids("worker", "up")) == 3)
    assert show.stop() == 0
    assert len(show.diary("ready")) == 1


def test_killed_child_comes_back_quickly(stage: Stage) -> None:
    show = stage(
        'sys.exit(Supervisor([ChildRole("worker", serve("worker"), 2)], on_ready=lambda: note("ready")).run())'
    )
    show.until(lambda: show.diary("ready"))
    before = time.monotonic()
    os.kill(show.pids("worker", "up")[0], signal.SIGKILL)
    show.until(lambda: len(show.pids("worker", "up")) == 3)
    assert time.monotonic() - before < 2.0
    assert "SIGKILL" in show.log
    assert show.stop() == 0
    assert len(show.pids("worker", "gone")) == 2


def test_child_that_keeps_dying_comes_back_ever_later(stage: Stage) -> None:
    show = stage("""
def crash(ready, number):
    note("crash", time.monotonic())
    ready()
    time.sleep(0.1)
    raise RuntimeError("as planned")
sys.exit(Supervisor([ChildRole("worker", crash)]).run())
""")
    show.until(lambda: len(show.diary("crash")) == 5)
    times = [float(line[1]) for line in show.diary("crash")]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    for gap, pause in zip(gaps, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert gap > pause
    show.until(lambda: show.log.count("process.died") == 5)
    assert "as planned" in show.log  # with its traceback
    assert show.stop() == 0


@pytest.mark.parametrize("code", [1, 2])
def test_first_start_that_fails_three_times_is_given_up(stage: Stage, code: int) -> None:
    show = stage(f"""
roles = [ChildRole("database", serve("database")), ChildRole("worker", fail("worker", {code}))]
sys.exit(Supervisor(roles, on_ready=lambda: note("ready")).run())
""")
    assert show.exit_code() == 1
    assert len(show.diary("worker", "try")) == 3
    assert len(show.diary("database", "gone")) == 1
    assert not show.diary("ready")


def test_first_start_that_fails_twice_goes_on(stage: Stage) -> None:
    show = stage("""
def third_time_lucky(ready, number):
    note("try")
    if Path("diary").read_text().count("try") < 3:
        sys.exit("not yet")
    serve("worker")(ready, number)
sys.exit(Supervisor([ChildRole("worker", third_time_lucky)], on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    assert show.log.count("not yet") == 2
    assert show.stop() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_roles_stop_in_reverse_order(stage: Stage, signum: signal.Signals) -> None:
    show = stage("""
roles = [ChildRole("database", serve("database")), ChildRole("worker", serve("worker", linger=0.3), count=2)]
sys.exit(Supervisor(roles, on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    show.tell(signum)
    assert show.exit_code() == 0
    leaving = [line[:2] for line in show.diary() if line[1:2] in (["term"], ["gone"])]
    assert leaving == [
        *[["worker", "term"]] * 2,
        *[["worker", "gone"]] * 2,
        ["database", "term"],
        ["database", "gone"],
    ]


def test_child_that_leaves_badly_shows_in_the_exit_code(stage: Stage) -> None:
    show = stage(
        'sys.exit(Supervisor([ChildRole("worker", serve("worker", code=3))], on_ready=lambda: note("ready")).run())'
    )
    show.until(lambda: show.diary("ready"))
    assert show.stop() == 1
    assert "exit code 3" in show.log


def test_child_stopped_before_it_could_listen_to_sigterm_is_fine(stage: Stage) -> None:
    show = stage("""
def slow(ready, number):
    note("slow")
    time.sleep(60)
sys.exit(Supervisor([ChildRole("worker", slow)]).run())
""")
    show.until(lambda: show.diary("slow"))
    assert show.stop() == 0


def test_stuck_child_is_killed_when_the_drain_is_over(stage: Stage) -> None:
    show = stage("""
roles = [ChildRole("database", serve("database")), ChildRole("worker", stuck("worker"))]
sys.exit(Supervisor(roles, drain_s=1.0, on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    before = time.monotonic()
    assert show.stop() == 1
    assert 0.9 < time.monotonic() - before < 3.0
    assert "process.killed" in show.log
    assert show.diary("worker", "term")
    assert show.diary("database", "gone")  # it still had its turn


def test_second_sigterm_changes_neither_the_drain_nor_the_exit_code(stage: Stage) -> None:
    show = stage("""
def slow(ready, number):
    terms = []
    signal.signal(signal.SIGTERM, lambda *_: (terms.append(1), note("slow", "term")))
    ready()
    while not Path("go").exists():
        time.sleep(0.01)
sys.exit(Supervisor([ChildRole("worker", slow)], on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    show.tell(signal.SIGTERM)
    show.until(lambda: show.diary("slow", "term"))
    for _ in range(3):
        show.tell(signal.SIGTERM)
    (show.folder / "go").touch()
    assert show.process.wait(10) == 0
    assert len(show.diary("slow", "term")) == 1
    assert "process.killed" not in show.log


def test_second_ctrl_c_kills_at_once(stage: Stage) -> None:
    show = stage('sys.exit(Supervisor([ChildRole("worker", stuck("worker"))], on_ready=lambda: note("ready")).run())')
    show.until(lambda: show.diary("ready"))
    show.tell(signal.SIGINT)
    show.until(lambda: show.diary("worker", "term"))
    before = time.monotonic()
    show.tell(signal.SIGINT)
    assert show.process.wait(10) == 1
    assert time.monotonic() - before < 2.0


def test_ctrl_c_reaches_the_supervisor_only(stage: Stage) -> None:
    show = stage('sys.exit(Supervisor([ChildRole("worker", serve("worker"))], on_ready=lambda: note("ready")).run())')
    show.until(lambda: show.diary("ready"))
    assert os.getpgid(show.pids("worker", "up")[0]) != os.getpgid(show.process.pid)
    assert show.stop() == 0


RELOADING = """
Path("generation").write_text("1")
def read():
    generation = Path("generation").read_text()
    if generation == "broken":
        raise ValueError("broken configuration")
    run = {"fail": fail("worker-fail"), "silent": lambda *_: (note("silent"), time.sleep(60))}.get(generation)
    return [ChildRole("database", serve("database")), ChildRole("worker", run or serve("worker-" + generation), COUNT)]
COUNT = 2
sys.exit(Supervisor(read(), on_ready=lambda: note("ready"), reload=read).run())
"""


def reload(show: Show, generation: str) -> None:
    (show.folder / "generation").write_text(generation)
    show.tell(signal.SIGHUP)


def test_sighup_replaces_workers_one_by_one(stage: Stage) -> None:
    show = stage(RELOADING)
    show.until(lambda: show.diary("ready"))
    reload(show, "2")
    show.until(lambda: "reload.finished" in show.log)
    serving, lowest, highest = 0, 99, 0
    started = False
    for line in show.diary():
        if line[0].startswith("worker"):
            serving += {"up": 1, "term": -1, "gone": 0}[line[1]]
            started = started or serving == 2
            lowest, highest = min(lowest, serving if started else 99), max(highest, serving)
    assert (lowest, highest) == (2, 3)
    assert len(show.diary("worker-1", "gone")) == 2
    assert len(show.diary("worker-2", "up")) == 2
    assert not show.diary("database", "term")
    os.kill(show.pids("worker-2", "up")[0], signal.SIGKILL)  # who follows is of the new generation too
    show.until(lambda: len(show.diary("worker-2", "up")) == 3)
    assert show.stop() == 0
    assert len(show.diary("worker-2", "gone")) == 2
    assert len(show.diary("ready")) == 1


def test_sighup_can_change_the_number_of_workers(stage: Stage) -> None:
    show = stage(RELOADING.replace("COUNT)]", 'int(generation) if generation != "1" else 2)]'))
    show.until(lambda: show.diary("ready"))
    reload(show, "3")
    show.until(lambda: "reload.finished" in show.log)
    assert len(show.diary("worker-3", "up")) == 3
    reload(show, "1")
    show.until(lambda: show.log.count("reload.finished") == 2)
    assert len(show.diary("worker-3", "gone")) == 3
    assert len(show.diary("worker-1", "up")) == 4
    assert show.stop() == 0


def test_sighup_with_a_generation_that_fails_keeps_the_old(stage: Stage) -> None:
    show = stage(RELOADING)
    show.until(lambda: show.diary("ready"))
    reload(show, "fail")
    show.until(lambda: "reload.abandoned" in show.log)
    reload(show, "broken")
    show.until(lambda: "reload.failed" in show.log)
    assert not show.diary("worker-1", "term")
    assert len(show.diary("worker-fail")) == 1
    reload(show, "2")
    show.until(lambda: "reload.finished" in show.log)
    assert show.stop() == 0


def test_newcomer_that_never_gets_ready_is_sent_away(stage: Stage) -> None:
    show = stage(f"import sso.serve.supervisor as it\nit._READY_S = 0.5\n{RELOADING}")
    show.until(lambda: show.diary("ready"))
    reload(show, "silent")
    show.until(lambda: "reload.abandoned" in show.log)
    assert not show.diary("worker-1", "term")
    assert len(show.diary("silent")) == 1
    assert show.stop() == 0


def test_sigterm_interrupts_a_reload(stage: Stage) -> None:
    show = stage(RELOADING)
    show.until(lambda: show.diary("ready"))
    reload(show, "silent")
    show.until(lambda: show.diary("silent"))
    before = time.monotonic()
    assert show.stop() == 0
    assert time.monotonic() - before < 2.0
    assert len(show.diary("worker-1", "gone")) == 2
    assert show.diary()[-1][:2] == ["database", "gone"]


def test_sigterm_is_not_repeated_to_a_worker_the_reload_sent_away(stage: Stage) -> None:
    show = stage(RELOADING.replace('serve("worker-" + generation)', 'serve("worker-" + generation, linger=0.5)'))
    show.until(lambda: show.diary("ready"))
    reload(show, "2")
    show.until(lambda: show.diary("worker-1", "term"))
    assert show.stop() == 0
    assert len(show.diary("worker-1", "term")) == 2


def test_old_worker_that_dies_during_a_reload_comes_back(stage: Stage) -> None:
    show = stage(RELOADING)
    show.until(lambda: show.diary("ready"))
    reload(show, "silent")
    show.until(lambda: show.diary("silent"))
    for pid in show.pids("worker-1", "up"):
        os.kill(pid, signal.SIGKILL)
    show.until(lambda: len(show.diary("worker-1", "up")) == 4)
    assert show.stop() == 0


def test_sighups_during_a_reload_are_queued_once(stage: Stage) -> None:
    show = stage("""
def read():
    note("read")
    return [ChildRole("worker", serve("worker", linger=0.5))]
sys.exit(Supervisor(read(), on_ready=lambda: note("ready"), reload=read).run())
""")
    show.until(lambda: show.diary("ready"))
    show.tell(signal.SIGHUP)
    show.until(lambda: len(show.diary("worker", "term")) == 1)
    for _ in range(3):
        show.tell(signal.SIGHUP)
        time.sleep(0.05)
    show.until(lambda: show.log.count("reload.finished") == 2)
    assert show.stop() == 0
    assert len(show.diary("read")) == 3


def test_children_leave_when_the_supervisor_is_killed(stage: Stage) -> None:
    show = stage("""
roles = [ChildRole("database", serve("database")), ChildRole("worker", serve("worker"), count=2)]
sys.exit(Supervisor(roles, on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    show.process.kill()
    show.until(lambda: len(show.diary("worker", "gone")) == 2 and show.diary("database", "gone"))
    assert show.exit_code() == -signal.SIGKILL


def test_idle_supervisor_sleeps(stage: Stage) -> None:
    show = stage('sys.exit(Supervisor([ChildRole("worker", serve("worker"))], on_ready=lambda: note("ready")).run())')
    show.until(lambda: show.diary("ready"))

    def wakes() -> int:
        status = Path(f"/proc/{show.process.pid}/status").read_text()
        return int(status.split("nonvoluntary_ctxt_switches")[0].split("voluntary_ctxt_switches:")[1])

    time.sleep(0.1)
    before = wakes()
    time.sleep(1.0)
    assert wakes() - before <= 2
    assert show.stop() == 0


def test_failing_on_ready_stops_everything(stage: Stage) -> None:
    show = stage('sys.exit(Supervisor([ChildRole("worker", serve("worker"))], on_ready=lambda: 1 / 0).run())')
    assert show.exit_code() == 1
    assert show.diary("worker", "gone")
    assert "ZeroDivisionError" in show.log


def test_child_has_plain_signals_and_a_name(stage: Stage) -> None:
    show = stage("""
def look(ready, number):
    note("blocked", len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    note("name", Path("/proc/self/comm").read_text().strip())
    serve("worker")(ready, number)
sys.exit(Supervisor([ChildRole("worker", look)], on_ready=lambda: note("ready")).run())
""")
    show.until(lambda: show.diary("ready"))
    assert show.diary("blocked", "0")
    assert show.diary("name", "sso-worker-1")
    assert show.stop() == 0


def test_buffered_output_is_written_once(stage: Stage) -> None:
    show = stage("""
print("before the fork")
def speak(ready, number):
    print("in the child")
    serve("worker")(ready, number)
roles = [ChildRole("worker", speak)]
sys.exit(Supervisor(roles, on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM)).run())
""")
    assert show.exit_code() == 0
    assert show.log.count("before the fork") == 1
    assert show.log.count("in the child") == 1


def test_roles_are_checked() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ChildRole("worker", lambda ready, number: None, count=0)
    with pytest.raises(ValueError, match="same name"):
        Supervisor([ChildRole("worker", lambda ready, number: None), ChildRole("worker", lambda ready, number: None)])
