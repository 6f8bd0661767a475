"""A small model with places for what a test wants to say of it."""

ARM = """
<mujoco>
  <option {option}><flag {flag}/></option>
  <worldbody>
    <site name="fixed"/>
    <geom name="floor" type="plane" size="1 1 1" {floor}/>
    <body name="upper" pos="0 0 1" {body}>
      <joint name="shoulder" axis="0 1 0" {joint}/>
      <geom name="rod" type="{shape}" size="0.05 0.15 0.05" {geom}/>
      <site name="tip"/>
    </body>
  </worldbody>
  {extra}
  <actuator><motor name="drive" joint="shoulder" gear="3" ctrlrange="-2 2" {motor}/>{actuator}</actuator>
</mujoco>
"""
TENDON = '<tendon><fixed name="cord" {}><joint joint="shoulder" coef="1"/></fixed></tendon>'


def arm(**parts):
  """Return a one-joint arm above a floor, with XML put into the places that `parts` names."""
  places = ("option", "flag", "floor", "body", "joint", "geom", "extra", "motor", "actuator")
  return ARM.format(**dict.fromkeys(places, "") | {"shape": "capsule"} | parts)
