"""Whole models of unusual build in float64, against MuJoCo: what the engine's pieces make together."""

import pytest

from physics.load import load_model
from tests.physics.reports import assert_agrees

LINK = (
  '<body pos="0.1 0 0"><joint axis="{axis}"/><geom size="0.03" mass="0.1" pos="0.05 0 0"/>{inside}</body>'
)
BALL = '<body pos="{pos}"><freejoint/><geom size="0.1"/></body>'
MODELS = {
  "empty": "<worldbody/>",
  "nothing moves": '<worldbody><geom size="1"/><body><geom size="1"/></body></worldbody>',
  "massless bodies": """<worldbody>
      <body><joint axis="0 1 0"/><body pos="0 0 1"><geom size="0.1"/>
        <body><joint axis="1 0 0"/><geom size="0.1" pos="0 1 0"/><body><site/></body></body></body></body>
      <body pos="1 0 0"><joint type="ball"/><body pos="0 0 -1"><geom size="0.1"/></body></body>
    </worldbody>""",
  "several joints per body": """<worldbody><body>
      <joint type="slide" axis="1 0 0"/><joint axis="0 1 0" pos="0 0 0.1"/><joint type="ball" pos="0.1 0 0"/>
      <geom type="box" size="0.1 0.2 0.3"/>
    </body></worldbody>""",
  "trees on a mocap body and in mid-air": """<worldbody>
      <body mocap="true" pos="0 0 1"><geom type="box" size="0.5 0.5 0.1"/>
        <body pos="0 0 -0.2"><joint axis="0 1 0"/>
          <geom type="capsule" size="0.05 0.1" pos="0 0 -0.2"/></body>
      </body>
      <body pos="0 0.2 1.18"><freejoint/><geom size="0.1"/></body>
      <body pos="2 0 0"><joint type="slide"/><geom size="0.1"/></body>
    </worldbody>""",
  "spheres that turn in place and always touch": """<worldbody>
      <body><joint axis="0 1 0"/><geom size="0.1" condim="1"/></body>
      <body pos="0.19 0 0"><joint axis="0 0 1"/><geom size="0.1" condim="1"/></body>
    </worldbody>""",
  "held by dampers": """<worldbody><body>
      <joint type="slide" damping="1e11"/><geom size="0.1" mass="1e4"/>
      <body pos="0 0 -0.2"><joint axis="0 1 0" limited="true" range="-20 20"/><geom size="0.1"/></body>
    </body></worldbody>""",
}


def chain(count):
  inside = ""
  for i in range(count):
    inside = LINK.format(axis=("0 1 0", "0 0 1", "1 1 0")[i % 3], inside=inside)
  return f"<worldbody>{inside}</worldbody>"


MODELS["deep chain"] = chain(30)
MODELS["many trees"] = f"<worldbody>{''.join(BALL.format(pos=f'{i} 0 0') for i in range(8))}</worldbody>"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_whole_models_are_mujocos(name, integrator):
  assert_agrees(load_model(f"<mujoco>{MODELS[name]}</mujoco>", integrator=integrator))
