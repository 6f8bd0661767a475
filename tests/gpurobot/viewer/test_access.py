"""The server of the page answers its own pages, and no other page of the internet."""

import dataclasses
import http.client
import math
import socket

import msgspec
import pytest
import viser
import websockets.sync.client
from viser._messages import GuiUpdateMessage, ViewerCameraMessage

from gpurobot.settings.config import ConfigError
from gpurobot.viewer import access
from gpurobot.viewer.access import Access, guarded_servers
from gpurobot.viewer.browser import Browser

HERE = ["localhost", "127.0.0.1", "[::1]"]
UPGRADE = {
  "Upgrade": "websocket",
  "Connection": "Upgrade",
  "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
}


@pytest.fixture(scope="module")
def ask(make_player, box_run):
  """Return how to ask a page's server for its WebSocket, or the page; that returns status and text."""
  browser = Browser(make_player(), str(box_run), "localhost", 8400)

  def ask(hosts, origin=None, upgrade=UPGRADE):
    connection = http.client.HTTPConnection("localhost", browser.server.get_port(), timeout=600)
    connection.putrequest("GET", "/", skip_host=True)
    origins = {"Origin": origin} if origin else {}
    for name, value in [*(("Host", host) for host in hosts), *origins.items(), *upgrade.items()]:
      connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = "" if answer.status == http.HTTPStatus.SWITCHING_PROTOCOLS else answer.read().decode()
    connection.close()
    return answer.status, text

  yield ask
  browser.server.stop()


@pytest.mark.parametrize("host", [*HERE, "localhost:8400", "[::1]:9000"])
def test_its_own_page_is_answered_through_any_port(ask, host):
  assert ask([host], f"http://{host}")[0] == 101
  assert ask([host], f"https://{host}")[0] == 101
  assert ask([host])[0] == 101  # a program
  assert ask([host], upgrade={})[0] == 200


@pytest.mark.parametrize(
  "origin", ["http://localhost:3000", "http://localhost.evil.example", "null", "chrome-extension://evil"]
)
def test_a_page_of_another_origin_is_refused(ask, origin, capsys):
  access._warn.cache_clear()
  status, text = ask(["localhost:8400"], origin)
  assert status == 403
  assert text.startswith(f"a page of '{origin}' asked for the viewer and was refused;")
  assert ask(["localhost:8400"], origin)[0] == 403
  assert capsys.readouterr().err == f"warning: {text}"


@pytest.mark.parametrize("upgrade", [UPGRADE, {}], ids=["socket", "page"])
@pytest.mark.parametrize(
  "hosts",
  [["localhost.evil.example"], [], ["localhost", "evil.example:8400"], ["[::"], ["\xe9"]],
)
def test_a_name_that_was_made_to_lead_here_is_refused(ask, hosts, upgrade):
  origin = f"http://{hosts[0]}" if hosts else "http://evil.example"
  assert ask(hosts, origin, upgrade)[0] == 403
  assert ask(hosts, None, upgrade)[0] == 403


def test_a_name_that_is_listed_is_allowed_before_and_behind_a_proxy():
  rule = Access("localhost", ["Robots.example.org"])
  assert rule.problem("robots.example.org", "https://robots.example.org") == ""
  assert rule.problem("localhost:8080", "https://robots.example.org") == ""
  assert "if it is, add allowed_hosts=[other.example.org]" in rule.problem("other.example.org", None)
  told = rule.problem("localhost", "http://evil.example:80")
  assert "if it is yours, add allowed_hosts=[evil.example]" in told


def test_other_machines_use_the_address_that_is_served_or_all_of_them():
  assert Access("10.1.2.3").problem("10.1.2.3:8080", "http://10.1.2.3:8080") == ""
  assert Access("10.1.2.3").problem("10.1.2.4:8080", None) != ""
  for everywhere in access.EVERYWHERE:
    rule = Access(everywhere)
    for host in ("10.1.2.3:8080", "[fe80::1]:8080", "localhost:1", socket.gethostname().upper()):
      assert rule.problem(host, f"http://{host}") == ""
      assert rule.problem(host, "http://evil.example") != ""
    assert rule.problem("evil.example", "http://evil.example") != ""


def test_a_server_that_cannot_be_guarded_is_an_error():
  servers = guarded_servers(Access("localhost"), lambda process: process)
  with pytest.raises(RuntimeError, match="without a guard"), servers:
    pass


CAMERA = ViewerCameraMessage(
  wxyz=(1.0, 0.0, 0.0, 0.0),
  position=(3.0, 0.0, 1.0),
  fov=1.0,
  near=0.1,
  far=100.0,
  image_height=300,
  image_width=400,
  look_at=(0.0, 0.0, 0.0),
  up_direction=(0.0, 0.0, 1.0),
)
NAN = math.nan


CAMERAS = ({"position": (NAN, 0.0, 0.0)}, {"fov": NAN}, {"image_height": 0}, {"look_at": (NAN, 0.0, 0.0)})


def test_no_message_of_a_client_ends_the_viewer(make_player, box_run):
  cameras = [dataclasses.replace(CAMERA, **camera) for camera in ({}, *CAMERAS)]
  browser = Browser(make_player(), str(box_run), "localhost", 8400)
  updates = [{"value": NAN}, {"value": "nan"}, {"value": 1e300}, {"max": NAN}, {"min": "x"}, {"max": None}]
  sliders = [part._impl.uuid for part in (browser._speed, browser._index)]
  messages = [GuiUpdateMessage(slider, update) for slider in sliders for update in updates]
  boxes = [part._impl.uuid for part in (browser._follow, browser._paused)]
  messages += [GuiUpdateMessage(box, {"value": True}) for box in boxes]
  protocol = f"viser-v{viser.__version__}"
  address = browser.address.replace("http", "ws")
  with websockets.sync.client.connect(address, subprotocols=[protocol], max_size=None) as client:
    for message in (*cameras, *messages):
      client.send(msgspec.msgpack.encode(message.as_serializable_dict()))
    while not browser._paused.value:
      browser.turn()
    for _ in range(3):
      browser.turn()
    assert (browser._speed.max, browser._index.min) == (2.0, 0)
  browser.server.stop()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.name.invalid", "::2"])
def test_a_host_that_is_not_this_machines_is_refused_at_once(make_player, box_run, host):
  with pytest.raises(ConfigError, match=f"host={host} is no address of this machine: write host=localhost"):
    Browser(make_player(), str(box_run), host, 8400)
