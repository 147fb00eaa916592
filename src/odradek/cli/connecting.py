"""Connects commands to a cluster: bootstrap servers, client settings and error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.options import UsageProblem
from odradek.common.errors import ConfigError, OdradekError

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "ODRADEK_BOOTSTRAP"
CLIENT_ID = "odradek-cli"
_COMPLETION_TIMEOUT_MS = 2000

bootstrap_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap",
    envvar=BOOTSTRAP_VARIABLE,
    default=DEFAULT_BOOTSTRAP,
    metavar="HOST:PORT[,...]",
    help=f"Brokers to connect to first; {BOOTSTRAP_VARIABLE} or {DEFAULT_BOOTSTRAP} by default.",
)


settings_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-X",
    "--command-property",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the client, by Kafka's name: -X request.timeout.ms=5000. Repeatable.",
)


class Failed(click.ClickException):
    """The command is valid but failed."""

    exit_code = 1


@contextmanager
def friendly_errors() -> Iterator[None]:
    """Convert client exceptions to error messages, with the next step where there is one."""
    from odradek.client.errors import NoBrokersAvailable  # noqa: PLC0415

    try:
        yield
    except ConfigError as error:
        raise UsageProblem(str(error)) from None
    except NoBrokersAvailable as error:
        raise Failed(f"{error}.\n{NEXT_STEP}") from None
    except OdradekError as error:
        raise Failed(str(error)) from None


NEXT_STEP = (
    "Is a broker running there? `odradek start` starts one; "
    f"--bootstrap-server HOST:PORT or {BOOTSTRAP_VARIABLE} names another."
)


def client_settings(pairs: tuple[str, ...]) -> dict[str, str]:
    """The values of -X as keyword arguments of a client."""
    settings = {"client_id": CLIENT_ID}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageProblem(f"-X {pair!r} is not NAME=VALUE")
        settings[name.strip().replace(".", "_")] = value
    return settings


@contextmanager
def admin_client(bootstrap: str, **settings: Any) -> Iterator[Admin]:
    """A connected admin client; fails at once if the cluster cannot be reached."""
    from odradek.client.admin.admin import Admin  # noqa: PLC0415

    with friendly_errors():
        client = Admin(bootstrap_servers=bootstrap, client_id=CLIENT_ID, **settings)
        try:
            client.connect()
            yield client
        finally:
            client.close()


def complete_names(ctx: click.Context, incomplete: str, names: Callable[[Admin], Iterable[str]]) -> list[str]:
    """Names that start with `incomplete`; none if the cluster cannot be reached."""
    bootstrap = ctx.params.get("bootstrap") or DEFAULT_BOOTSTRAP
    try:
        with admin_client(bootstrap, default_api_timeout_ms=_COMPLETION_TIMEOUT_MS) as admin:
            return [name for name in names(admin) if name.startswith(incomplete)]
    except click.ClickException:
        return []
