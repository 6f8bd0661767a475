"""Scenes that cameras look at."""

import numpy as np

_RANDOM = np.random.default_rng(0)
_POINTS = _RANDOM.normal(size=(60, 3))
_POINTS *= [0.5, 0.4, 0.3] / np.linalg.norm(_POINTS, axis=1, keepdims=True)
_VERTICES = " ".join(f"{x:.4f}" for x in _POINTS.ravel())
_ELEVATION = " ".join(f"{x:.3f}" for x in _RANDOM.uniform(size=30))

SHAPES = """<mujoco>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 .2" width="32" height="32"/>
    <texture name="cube" type="cube" builtin="checker" rgb1="1 .2 0" rgb2="0 1 .3" width="32" height="32"/>
    <texture name="flat" type="2d" builtin="checker" rgb1=".2 .3 .4" rgb2=".6 .6 .5" width="32" height="32"/>
    <material name="floor" texture="flat" texrepeat="1 1" texuniform="true"/>
    <material name="toy" texture="cube"/>
  </asset>
  <worldbody>
    <light directional="true" pos="0 0 4" dir="0.3 0.2 -1"/>
    <light pos="-1 2 3" dir="0.1 -0.6 -1" cutoff="60" diffuse=".3 .2 .2" castshadow="false"/>
    <geom type="plane" size="0 0 1" material="floor"/>
    <geom size="0.3" pos="0 0 0.5" rgba="1 0 0 1"/>
    <geom type="box" size="0.2 0.3 0.15" pos="0.5 0.9 0.3" euler="10 20 30" material="toy"/>
    <body name="arm" pos="0 -0.9 0.6">
      <joint axis="0 1 0"/>
      <geom type="capsule" size="0.15 0.3" euler="50 20 30" rgba="0 0 1 1"/>
      <camera name="on_arm" pos="-0.6 0.3 0.5" xyaxes="0 -1 0 0.5 0 1" fovy="70"/>
    </body>
    <geom type="cylinder" size="0.2 0.2" pos="-1 0.6 0.4" euler="40 -20 30" rgba="0 1 1 1"/>
    <geom type="ellipsoid" size="0.2 0.3 0.1" pos="-1 -0.6 0.4" euler="40 -20 30" rgba="1 0 1 1"/>
    <geom size="0.3" pos="-0.5 0 0.5" rgba="1 1 0 0"/>
    <geom size="0.3" pos="-1.5 0 0.5" group="3"/>
    <site name="marker" pos="-2 0 1" size="0.2"/>
    <camera name="eye" pos="-3 0.2 1.5" xyaxes="0 -1 0 0.4 0 1" fovy="50"/>
    <camera name="lens" pos="-3 0.2 1.5" xyaxes="0 -1 0 0.4 0 1" resolution="48 36" sensorsize="0.0048 0.0036"
      focal="0.004 0.003" principal="0.0005 -0.0003"/>
    <camera name="track" mode="targetbody" target="arm" pos="-3 1 1.5"/>
  </worldbody>
</mujoco>"""

GROUND = f"""<mujoco>
  <asset>
    <hfield name="hills" nrow="5" ncol="6" size="2 1.5 0.8 0.3" elevation="{_ELEVATION}"/>
    <mesh name="stone" vertex="{_VERTICES}"/>
  </asset>
  <worldbody>
    <light pos="1 0 4" dir="-0.2 0 -1" cutoff="80"/>
    <geom type="hfield" hfield="hills" rgba=".6 .6 .3 1"/>
    <geom type="mesh" mesh="stone" pos="0.2 0 1.2" rgba=".2 .6 .9 1"/>
    <geom type="mesh" mesh="stone" pos="1.2 0.5 1.1" euler="40 50 60" rgba=".9 .6 .2 1"/>
    <camera name="eye" pos="0 -4 2" xyaxes="1 0 0 0 0.45 0.9"/>
    <camera name="side" pos="4 0.3 1" xyaxes="0 1 0 -0.2 0 1"/>
    <camera name="below" pos="-1 -3 -2" xyaxes="1 0 0 0 -0.45 0.9"/>
  </worldbody>
</mujoco>"""
