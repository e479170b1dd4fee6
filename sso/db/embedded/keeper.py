"""The keeper of an embedded PostgreSQL: a process that starts it, and stops it when no process uses it any more.

``start.py`` runs this file as a script. The keeper outlives the process that started it. It lives as long as
PostgreSQL, so it imports as little as possible.
"""

import _thread
import fcntl
import os
import sys
import time

# POSIX and Linux define the numbers; the `signal` module would take a tenth of this process's memory.
FAST_SHUTDOWN = 2  # SIGINT: end sessions, write a checkpoint
IMMEDIATE_SHUTDOWN = 3  # SIGQUIT: exit now, recover at the next start
PR_SET_PDEATHSIG = 1

FAST_SHUTDOWN_SECONDS = 30


def main(arguments: list[str]) -> None:
    uid, gid, users = map(int, arguments[:3])
    if os.fork():
        os._exit(0)  # the starter waits for this process only; init adopts and reaps the keeper

    keeper = os.getpid()
    postgres = os.fork()  # in the main thread: the death signal is tied to the thread that forks
    if not postgres:
        try:
            os.close(users)  # PostgreSQL inherits running.lock, but not this one
            become_postgres(uid, gid, keeper, arguments[3:])
        except OSError as error:
            os.write(2, f"FATAL:  {error}\n".encode())  # the log
        finally:
            os._exit(127)

    drop_privileges(uid, gid)
    signalling = _thread.allocate_lock()
    _thread.start_new_thread(stop_when_unused, (users, postgres, signalling))
    os.waitid(os.P_PID, postgres, os.WEXITED | os.WNOWAIT)
    signalling.acquire()  # for ever: once PostgreSQL is reaped, its pid may be reused
    os.waitpid(postgres, 0)
    os._exit(0)


def become_postgres(uid: int, gid: int, keeper: int, command: list[str]) -> None:
    import ctypes  # here, to save memory in the keeper; before drop_privileges(), as uid may not be able to read it

    libc = ctypes.CDLL(None, use_errno=True)
    drop_privileges(uid, gid)
    # Afterwards, because a change of credentials clears it.
    if libc.prctl(PR_SET_PDEATHSIG, FAST_SHUTDOWN, 0, 0, 0) or os.getppid() != keeper:
        return
    os.execv(command[0], command)  # noqa: S606 - the command comes from start.py


def drop_privileges(uid: int, gid: int) -> None:
    """PostgreSQL refuses to run as root, and the keeper does not need root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def stop_when_unused(users: int, postgres: int, signalling: _thread.LockType) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)  # every user holds it shared; the kernel releases it however a user ends
    # The lock is held until this process ends: a new user waits for that, then starts PostgreSQL again.
    for _ in range(FAST_SHUTDOWN_SECONDS):
        with signalling:
            os.kill(postgres, FAST_SHUTDOWN)  # each second: PostgreSQL may not have been ready for the first one
        time.sleep(1)
    with signalling:
        os.kill(postgres, IMMEDIATE_SHUTDOWN)


if __name__ == "__main__":
    main(sys.argv[1:])
