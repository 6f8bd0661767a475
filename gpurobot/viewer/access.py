"""Access to the viewer's page: which browsers its server answers, and which of their messages it takes.

Any web page can make a browser send requests to this machine. Their Origin header names that page. If its
name was made to resolve to this machine (DNS rebinding), the Host header has that name too.
"""

import contextlib
import functools
import ipaddress
import math
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import viser.infra
import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from gpurobot.settings.config import ConfigError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # every address of the machine
Process = Callable[[ServerConnection, Request], Response | None]  # returns the answer, or None to go on


class Access:
  """Rule for requests: they name this server as their Host, and come from a page of it."""

  def __init__(self, host: str, allowed_hosts: Collection[str] = ()) -> None:
    """Allow loopback, `host` and `allowed_hosts` as names of the server, at any port, because ssh changes it.

    If `host` is EVERYWHERE, the machine's name and all IP addresses are allowed too: no name leads to these.
    """
    self.host, self._everywhere = host, host in EVERYWHERE
    own = (socket.gethostname(), socket.getfqdn()) if self._everywhere else ()
    self._allowed = {name.lower() for name in allowed_hosts}
    self._names = {name.lower() for name in (*LOOPBACK, host, *own)} | self._allowed

  def problem(self, host: str, origin: str | None) -> str:
    """Return why a request with these headers is refused, "" if it is not; only browsers send an Origin."""
    name = _name(f"//{host}")
    if name not in self._names and not (self._everywhere and _is_address(name)):
      return (
        f"a browser asked for '{name}', which is no name of the viewer; if it is, add allowed_hosts=[{name}]"
      )
    if origin is None or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower()):
      return ""
    name = _name(origin)  # behind a proxy Host may be the proxy's name for this server
    if name in self._allowed:
      return ""
    return (
      f"a page of '{origin}' asked for the viewer and was refused; if it is yours, add allowed_hosts=[{name}]"
    )

  def guard(self, process: Process) -> Process:
    """Return `process` for the requests that are allowed; it refuses the others, and prints a warning."""

    def guarded(connection: ServerConnection, request: Request) -> Response | None:
      hosts, origins = (request.headers.get_all(name) for name in ("Host", "Origin"))
      problem = ascii(self.problem(",".join(hosts), ",".join(origins) or None))[1:-1]
      if not problem:
        return process(connection, request)
      _warn(problem)
      return connection.respond(HTTPStatus.FORBIDDEN, f"{problem}\n")

    return guarded


def _name(url: str) -> str:
  """Return the host of a URL in lower case; "" if there is none."""
  try:
    return urlsplit(url).hostname or ""
  except ValueError:
    return ""


def _is_address(name: str) -> bool:
  try:
    ipaddress.ip_address(name)
  except ValueError:
    return False
  return True


@functools.lru_cache(maxsize=16)
def _warn(problem: str) -> None:
  """Print a warning, not again and again."""
  print(f"warning: {problem}", file=sys.stderr)


def is_usable(content: Any) -> bool:
  """Return whether a client's message has only finite numbers, and sets no limit of a slider."""
  if isinstance(content, Mapping):
    return content.get("updates", {}).keys() <= {"value"} and is_usable(list(content.values()))
  if isinstance(content, list | tuple):
    return all(map(is_usable, content))
  return not isinstance(content, float) or math.isfinite(content)


def aspect_of(client: viser.ClientHandle) -> float:
  """Return the aspect of a client's page, at most 1, as the panel takes a part of its width."""
  return min(1.0, max(1, client.camera.image_width) / max(1, client.camera.image_height))


@functools.cache
def _take_what_is_usable() -> None:
  """Drop a client's unusable messages from now on, and messages that viser cannot read."""
  handler: Any = viser.infra.WebsockMessageHandler
  before = handler._handle_incoming_message

  async def handle(self: Any, client: int, message: Any) -> None:
    if is_usable(vars(message)):
      with contextlib.suppress(AssertionError, TypeError, ValueError):
        await before(self, client, message)

  handler._handle_incoming_message = handle


@contextlib.contextmanager
def guarded_servers(access: Access, serve: Callable[[Process], Process]) -> Iterator[None]:
  """Guard the servers that are started in the block by viser, which has no setting for it.

  serve: extends their answers to allowed requests. Raises ConfigError if no server can run at the
  host, and RuntimeError if none was started as this expects.
  """
  try:
    socket.create_server(
      (access.host, 0), family=socket.AF_INET6 if ":" in access.host else socket.AF_INET
    ).close()
  except OSError as error:
    raise ConfigError(
      f"host={access.host} is no address of this machine: write host=localhost or 0.0.0.0"
    ) from error
  _take_what_is_usable()
  before: Any = websockets.asyncio.server.serve
  started = []

  def start(*arguments: Any, process_request: Process, **settings: Any) -> Any:
    started.append(before(*arguments, process_request=access.guard(serve(process_request)), **settings))
    return started[-1]

  websockets.asyncio.server.serve = start  # type: ignore[assignment, misc]
  try:
    yield
  finally:
    websockets.asyncio.server.serve = before  # type: ignore[misc]
  if not started:
    raise RuntimeError("the viewer's server was started without a guard: this version of viser is not known")
