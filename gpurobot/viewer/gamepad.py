"""Gamepad of the browser: a script on the page sends the positions of its sticks to the server."""

import math
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from gpurobot.viewer.access import Process

PATH, HEADER = "/gamepad", "X-Gamepad"  # other sites' pages cannot send a header of one's own
AXES = 4  # of two sticks: to the right, down, and the same of the right stick; -1 ... 1
SCRIPT = f"""<script>
let last = "";
setInterval(() => {{
  const pad = navigator.getGamepads().find(Boolean);
  if (!pad) return;
  const axes = pad.axes.slice(0, {AXES}).map((axis) => axis.toFixed(2)).join(",");
  if (axes !== last) fetch("{PATH[1:]}?" + axes, {{headers: {{"{HEADER}": "1"}}}});
  last = axes;
}}, 50);
</script>
"""


class Gamepad:
  """Server's side of the browsers' gamepads; the one that moved last counts."""

  def __init__(self) -> None:
    """Begin without any."""
    self._axes: list[float] | None = None

  def take(self) -> list[float] | None:
    """Return the newest positions of the sticks [AXES], or None if they did not move since the last call."""
    axes, self._axes = self._axes, None
    return axes

  def serve(self, process: Process) -> Process:
    """Return `process` that also adds the script to the page and stores the script's messages."""

    def serve(connection: ServerConnection, request: Request) -> Response | None:
      url = urlsplit(request.path)
      if url.path == PATH and HEADER in request.headers:
        return connection.respond(self._take_in(url.query), "")
      page = url.path == "/" and "Upgrade" not in request.headers
      if page:
        del request.headers["Accept-Encoding"]  # a script cannot be appended to a compressed page
      response = process(connection, request)
      if page and response and response.status_code == HTTPStatus.OK:
        response.body += SCRIPT.encode()
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))
      return response

    return serve

  def _take_in(self, text: str) -> HTTPStatus:
    """Store positions that the script sends; a client may send any text."""
    try:
      axes = [float(word) for word in text.split(",")]
    except ValueError:
      return HTTPStatus.BAD_REQUEST
    if len(axes) != AXES or not all(map(math.isfinite, axes)):
      return HTTPStatus.BAD_REQUEST
    self._axes = [min(max(axis, -1.0), 1.0) for axis in axes]
    return HTTPStatus.NO_CONTENT
