"""`nram serve`: the explorer, a page in the browser that shows machines at work."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import webbrowser
from html import escape
from pathlib import Path
from urllib.parse import quote

from nram.cli.arguments import natural
from nram.cli.output import note, print_json
from nram.cli.program_argument import load_modules
from nram.errors import UsageError
from nram.explorer.settings import PORT, Settings, is_loopback
from nram.extensions import get_task
from nram.extras import require
from nram.files import write_atomically
from nram.messages import pasted
from nram.process import interruptible
from nram.programs.library import load_program

MOST_PORT = 65535
ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # all addresses of this machine, and the one that always is among them
TOKEN = "NRAM_TOKEN"  # an environment variable: words of a command are seen by other users


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Open a page in the browser that makes programs and trained machines visible: step through a run, see the "
        "circuits with their values, edit a program and watch it run, learn from a file of examples, follow training "
        "runs. Ctrl-C ends it."
    )
    parser.epilog = (
        "The server listens on this machine alone. With --host 0.0.0.0 others reach it too, over a connection that is "
        f"not encrypted; then it asks for a token, which is drawn at random. If {TOKEN} is set, it asks for that one "
        "whatever the host. Python files are loaded only if they are named here (--task, --module), not from the page."
    )
    parser.add_argument(
        "programs", nargs="*", type=pasted, metavar="PROGRAM", help="program files to offer beside those of the zoo"
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=natural, default=PORT, help=f"default: {PORT}; 0: any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    parser.add_argument(
        "--runs",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="a folder with runs of nram train and nram learn; may be repeated (default: runs and learned)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("learned"),
        metavar="FOLDER",
        help="where the page's results go (default: learned)",
    )
    parser.add_argument("--task", action="append", default=[], metavar="FILE", help="a file with a user-defined task")
    parser.add_argument(
        "--module", action="append", default=[], metavar="FILE", help="a file with a user-defined module"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.port > MOST_PORT:
        raise UsageError(f"--port {arguments.port}: ports go up to {MOST_PORT}")
    require("explorer", "the explorer")
    from nram.explorer.server import listen, serve

    load_modules(arguments)
    for file in arguments.task:
        get_task(file)
    folders = arguments.runs or [Path("runs"), Path("learned")]
    for folder in arguments.runs or []:
        if not folder.is_dir():
            raise UsageError(f"--runs {folder} is not a folder")
    alone, named = is_loopback(arguments.host), arguments.host not in ANY
    token = os.environ.get(TOKEN) or (None if alone else secrets.token_urlsafe(24))
    settings = Settings(
        host=arguments.host,
        port=arguments.port,
        token=token,
        folders=tuple(dict.fromkeys([*folders, arguments.out])),
        kept=arguments.out,
        programs={name: load_program(name) for name in arguments.programs},
    )
    settings, listening = listen(settings)
    address = _address(settings)

    def ready() -> None:
        if arguments.json:
            print_json({"url": address, "host": settings.host, "port": settings.port})
        else:
            print(f"The explorer is at {address}", flush=True)
        if alone:
            note("It answers to this machine alone. Ctrl-C ends it.")
        else:
            elsewhere = "" if named else " On other machines, put the IP address of this one into it."
            note(
                f"It listens on {settings.host}: others can reach it, over a connection that is not encrypted. Anyone "
                f"who has this address can use it.{elsewhere} Ctrl-C ends it."
            )
        sys.stdout.flush()
        if not arguments.no_browser and _has_browser():
            webbrowser.open(address if token is None else _private_page(Path(folder), address).as_uri())

    with (
        tempfile.TemporaryDirectory(prefix="nram-") as folder,
        interruptible("ending; jobs save what they have found") as stopping,
    ):
        serve(settings, listening, ready, stopping)
    return 0


def _private_page(folder: Path, address: str) -> Path:
    """A page that only this user can read and that leads to the address: other users see the words of commands."""
    page = folder / "explorer.html"
    write_atomically(page, f'<meta http-equiv="refresh" content="0; url={escape(address)}">\n'.encode())
    return page


def _address(settings: Settings) -> str:
    host = ANY.get(settings.host, settings.host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"http://{host}:{settings.port}/" + (f"?token={quote(settings.token)}" if settings.token else "")


def _has_browser() -> bool:
    """Whether there is a screen: a browser in the terminal would take it over."""
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
