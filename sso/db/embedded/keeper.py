"""The keeper of an embedded PostgreSQL: starts it, and stops it when nobody uses it any more.

Run as a script by ``start.py``. It outlives the process that started it, so it belongs to no sso process; it lives
as long as PostgreSQL does, so it imports as little as it can.
"""

import _thread
import fcntl
import os
import sys
import time

# The numbers are fixed by POSIX and Linux; the `signal` module would cost a tenth of this process's memory.
FAST_SHUTDOWN = 2  # SIGINT: end the sessions, write a checkpoint
IMMEDIATE_SHUTDOWN = 3  # SIGQUIT: leave now, recover at the next start
PR_SET_PDEATHSIG = 1

PATIENCE = 30  # seconds for a fast shutdown


def main(arguments: list[str]) -> None:
    uid, gid, users = map(int, arguments[:3])
    if os.fork():
        os._exit(0)  # the starter waits for this process only; the keeper is nobody's child, so nobody must reap it

    keeper = os.getpid()
    postgres = os.fork()  # from the main thread: the death signal follows the thread that forked
    if not postgres:
        try:
            os.close(users)  # running.lock goes on to PostgreSQL, this one does not
            become_postgres(uid, gid, keeper, arguments[3:])
        except OSError as error:
            os.write(2, f"FATAL:  {error}\n".encode())  # the log
        finally:
            os._exit(127)

    drop(uid, gid)
    signalling = _thread.allocate_lock()
    _thread.start_new_thread(stop_when_unused, (users, postgres, signalling))
    os.waitid(os.P_PID, postgres, os.WEXITED | os.WNOWAIT)
    signalling.acquire()  # for good: once it is reaped, its pid may be another process's
    os.waitpid(postgres, 0)
    os._exit(0)


def become_postgres(uid: int, gid: int, keeper: int, command: list[str]) -> None:
    import ctypes  # only here, so that the keeper need not hold it; before drop(), as uid may not be able to read it

    libc = ctypes.CDLL(None, use_errno=True)
    drop(uid, gid)
    # After drop(), because a change of credentials clears it.
    if libc.prctl(PR_SET_PDEATHSIG, FAST_SHUTDOWN, 0, 0, 0) or os.getppid() != keeper:
        return
    os.execv(command[0], command)  # noqa: S606 - the command comes from start.py


def drop(uid: int, gid: int) -> None:
    """PostgreSQL refuses to run as root, and the keeper has no need to."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def stop_when_unused(users: int, postgres: int, signalling: _thread.LockType) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)  # every user holds it shared; the kernel lets go of it however a user ends
    # The lock is kept until this process ends: whoever comes now waits, then starts PostgreSQL afresh.
    for _ in range(PATIENCE):
        with signalling:
            os.kill(postgres, FAST_SHUTDOWN)  # again each second: it may have come before PostgreSQL could take it
        time.sleep(1)
    with signalling:
        os.kill(postgres, IMMEDIATE_SHUTDOWN)


if __name__ == "__main__":
    main(sys.argv[1:])
