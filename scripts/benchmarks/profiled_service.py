"""The service with a sampler in each of its processes, for ``scripts/profile``.

After every few milliseconds of CPU time, a process writes a line to a file with its number in the folder of
``PROFILE_FOLDER``: the layer that its main thread is in, and the CPU time since the last line of this thread and of all
others, in microseconds. CPU time is independent of what else the machine does.
"""

import os
import signal
import time
from pathlib import Path
from types import FrameType

from scripts.benchmarks.profile_layers import THREADS, layer_of

FOLDER_VARIABLE = "PROFILE_FOLDER"
INTERVAL_S = 0.001  # the kernel's own interval, usually 4 ms, is the least


class Sampler:
    def __init__(self, file: Path) -> None:
        self._output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._thread_ns = time.thread_time_ns()
        self._process_ns = time.process_time_ns()

    def __call__(self, _: int, frame: FrameType | None) -> None:
        thread, process = time.thread_time_ns(), time.process_time_ns()
        own = thread - self._thread_ns
        others = max(0, process - self._process_ns - own)
        os.write(self._output, f"{layer_of(frame)} {own // 1000}\n{THREADS} {others // 1000}\n".encode())
        self._thread_ns, self._process_ns = thread, process


def start_sampler() -> None:
    signal.signal(signal.SIGPROF, Sampler(Path(os.environ[FOLDER_VARIABLE]) / str(os.getpid())))
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)


if __name__ == "__main__":
    from sso.cli import main

    os.register_at_fork(after_in_child=start_sampler)
    main()
