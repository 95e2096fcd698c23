"""`pii-bench serve`."""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options, positive, up_to
from pii_bench.cli.terminal import echo, log, standard_input
from pii_bench.errors import MissingExtraError, PiiBenchError
from pii_bench.systems import DEFAULT_SYSTEM

if TYPE_CHECKING:
    import argparse

    from pii_bench.web.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Serve the web application: masking in the browser, and an API. On this machine only, it "
        "needs no accounts; with another --host it needs an owner, who adds the other accounts."
    )
    parser.add_argument("--host", default="127.0.0.1", help="bind address (default: %(default)s)")
    parser.add_argument(
        "--port", type=up_to(65_535), default=8300, help="port (default: %(default)s)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name of the application, as behind a proxy; may be given several times",
    )
    parser.add_argument(
        "--database",
        default="pii-bench.sqlite",
        metavar="FILE",
        help="SQLite file or SQLAlchemy URL (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="the system that masks, as for `pii-bench mask` (default: %(default)s)",
    )
    parser.add_argument("--base-url", metavar="URL", help="endpoint of the chat model of --model")
    parser.add_argument(
        "--upstream",
        metavar="NAME",
        help="openai, deepseek or a base URL: the service that answers POST /v1/chat/completions "
        "with masked messages (default: none; the key for a URL is read from PII_BENCH_API_KEY)",
    )
    parser.add_argument(
        "--workers", type=positive, default=2, help="masking processes (default: %(default)s)"
    )
    add_options(parser, "--results")
    group = parser.add_argument_group("instead of serving").add_mutually_exclusive_group()
    group.add_argument(
        "--add-owner", metavar="NAME", help="create an owner's account; asks for the password"
    )
    group.add_argument(
        "--backup", type=Path, metavar="FILE", help="copy the database, even while it is served"
    )
    group.add_argument(
        "--restore",
        type=Path,
        metavar="FILE",
        help="restore the database from a copy; stop it first",
    )
    parser.add_argument(
        "--force", action="store_true", help="let --backup or --restore replace a file"
    )


def run(arguments: argparse.Namespace) -> bool:
    """Serve until interrupted; or create an account, or copy or restore the database."""
    if find_spec("fastapi") is None:
        raise MissingExtraError("the web application", "pip install -e '.[web]'")
    from pii_bench.web.database import back_up, restore
    from pii_bench.web.settings import Settings

    settings = Settings(
        database=arguments.database,
        host=arguments.host,
        port=arguments.port,
        hosts=tuple(arguments.allow_host),
        system=arguments.model,
        base_url=arguments.base_url,
        upstream=arguments.upstream,
        results=arguments.results,
        workers=arguments.workers,
    )
    if arguments.add_owner is not None:
        _add_owner(settings, arguments.add_owner)
    elif arguments.backup is not None:
        back_up(settings.database, arguments.backup, force=arguments.force)
    elif arguments.restore is not None:
        restore(settings.database, arguments.restore, force=arguments.force)
    else:
        _serve(settings)
    return True


def _serve(settings: Settings) -> None:
    import logging

    import uvicorn

    from pii_bench.web.app import create_app
    from pii_bench.web.settings import MOST_BYTES

    app = create_app(settings)
    # uvicorn would end the process with its own exit code if it could not bind the port.
    with _listen(settings.host, settings.port) as listening:
        app.state.web.masker.start()
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        log(f"pii-bench serve: http://{host}:{settings.port} (Ctrl+C to stop)")
        # The access log would contain query strings.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            server_header=False,
            ws_max_size=MOST_BYTES,
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, number: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, number), family=family)
    except OSError as error:
        raise PiiBenchError(f"--host {host} --port {number}: {error.strerror}") from None


def _add_owner(settings: Settings, name: str) -> None:
    from pii_bench.web.accounts import Role, add_account
    from pii_bench.web.database import Database

    database = Database(settings.database)
    add_account(database, name, Role.OWNER, _ask_password())
    echo(f"{name} is an owner")


def _ask_password() -> str:
    if not (given := standard_input()).isatty():
        return given.readline().rstrip("\n")
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise PiiBenchError("the two passwords differ; nothing was saved")
    return password
