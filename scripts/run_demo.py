"""Starts the service with demo data, and a demo web site that uses it. When both answer, prints where to go.

This process becomes the service, so signals and the exit code are those of `sso serve`. The demo site is a process of
its own. It reads the output of the service, which tells when the service is ready and when it has ended.
"""

import errno
import os
import re
import shlex
import signal
import socket
import sys
import threading
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import IO

from scripts.demo_installation import (
    NotTheDemo,
    check_installation,
    claim_data_directory,
    delete_data_directory,
    demo_settings,
)

ROOT = Path(__file__).parents[1]
READY = re.compile(r"sso is ready at (\S+)")
LINKS = """
  Admin console  {service}/console
  Account page   {service}/account
  New account    {service}/register
  Mails          {service}/demo/mail
  Documentation  {service}/docs/
  Playground     {service}/docs/playground
  Demo web site  {site}/
  Demo game      {game}    (in a second terminal)
  Administrator  demo@example.com with the password demo-password
  Player         player@example.com with the password player-password
  Test players   {service}/docs/testing.html (banned, slow, second factor, …)
  Stop           Ctrl-C
  Start afresh   scripts/run --reset"""
UNIX_ONLY = "\nThe service listens on {bind} only. To open it in a browser, set SSO_BIND={bind},127.0.0.1:8000."


def listen() -> socket.socket:
    """Opens the port of the demo site. Ends the program with one line if that is not possible."""
    port = os.environ.setdefault("DEMO_SITE_PORT", "8001")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        sys.exit("scripts/run: DEMO_SITE_PORT: must be a number from 1 to 65535")
    try:
        return socket.create_server(("127.0.0.1", int(port)))
    except OSError as error:
        reason = "the address is already in use" if error.errno == errno.EADDRINUSE else error.strerror
        sys.exit(f"scripts/run: cannot listen on 127.0.0.1:{port}: {reason}; set DEMO_SITE_PORT to another port")


def accompany_service(output: IO[str], listener: socket.socket) -> None:
    """Passes the output of the service on. The demo site runs from the moment it is ready until it has ended."""
    for line in output:
        print(line, end="", flush=True)
        if ready := READY.match(line):
            site = start_site(ready[1], listener)
            print(links(ready[1], site), flush=True)


def start_site(service: str, listener: socket.socket) -> str:
    """Returns the address of the demo site, which has answered."""
    os.environ |= {"SSO_BASE_URL": service, "no_proxy": "*"}
    from scripts import demo_site

    server = ThreadingHTTPServer(listener.getsockname(), demo_site.Site, bind_and_activate=False)
    server.socket = listener
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urllib.request.urlopen(demo_site.SITE, timeout=30):
        return demo_site.SITE


def links(service: str, site: str) -> str:
    bind = os.environ.get("SSO_BIND", "")
    if service == "http://localhost" and bind.startswith("unix:"):
        return UNIX_ONLY.format(bind=bind)
    game = f"{shlex.quote(str(ROOT / 'scripts/sso'))} play {service}"
    return LINKS.format(service=service, site=site, game=game)


def run_beside_service(reader: int, writer: int, listener: socket.socket) -> None:
    """Forks twice: the supervisor of the service must have no child processes but its own."""
    if pid := os.fork():
        os.waitpid(pid, 0)
        return
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the service, and that ends the demo site
    os.close(writer)
    try:
        with os.fdopen(reader) as output:
            accompany_service(output, listener)
    finally:
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    if sys.argv[1:] not in ([], ["--reset"]):
        sys.exit("scripts/run: the only option is --reset, which deletes the data of the demo first")
    os.environ |= demo_settings(os.environ)
    try:
        data_dir = check_installation(os.environ)
        if "--reset" in sys.argv:
            delete_data_directory(data_dir)
    except NotTheDemo as reason:
        sys.exit(f"scripts/run: {reason}")
    listener = listen()
    claim_data_directory(data_dir)
    reader, writer = os.pipe()
    run_beside_service(reader, writer, listener)
    os.dup2(writer, 1)
    program = str(Path(sys.executable).with_name("sso"))
    os.execv(program, [program, "serve", "--apply", str(ROOT / "scripts/demo.json")])


if __name__ == "__main__":
    main()
