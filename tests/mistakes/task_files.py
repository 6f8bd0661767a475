"""A user's task, and what users get wrong in it and in its robot."""

from pathlib import Path

from tests.test_docs import PAGES, python_blocks

SETUP, UPDATE, FIELD, BUFFER = (
  "  def setup(self):",
  "  def update(self):",
  "  reward_effort:",
  "self.buffer()",
)
BEST = "self.best.copy_(torch.maximum(self.best, self.sim.qpos[:, 0].cos()))"
FAST = "self.sim.qvel[:, 0].abs() > 100.0"
PENDULUM = (
  python_blocks(PAGES[Path("docs/new_task.md")])[0]
  .replace("from tasks import base\n", "import torch\n\nfrom tasks import base\n")
  .replace(
    "  def initial_state(self):",
    f"""\
{SETUP}
    self.best = {BUFFER}

{UPDATE}
    {BEST}

  def terminated(self):
    return {FAST}

  def initial_state(self):""",
  )
)
HEIGHT, EFFORT = '"height": self.sim.qpos[:, 0].cos()', "self.action[:, 0].square()"
BLOCKS, SPEED = '{"up": angle.cos(), "side": angle.sin(), "speed": self.sim.qvel}', '"speed": self.sim.qvel'
DEFAULTS = "the task's Config, TRAIN, PPO, SAC, TD3 or DISTILL: "
START = 'self.random.uniform("start angle", (1,), -pi, pi)'
Change = tuple[
  str, str, str
]  # what is written, what in its place, what is told; <line> is "<file>, line <n>"


def field(text: str, message: str) -> Change:
  """Add a field to the Config."""
  return FIELD, f"  {text}\n{FIELD}", message


def settings(value: str, message: str) -> Change:
  """Give the file settings of PPO."""
  return "@dataclass", f"PPO = {value}\n\n\n@dataclass", message


def attribute(text: str, message: str) -> Change:
  """Add an attribute to the Task."""
  return SETUP, f"  {text}\n\n{SETUP}", message


def method(head: str, body: str, message: str) -> Change:
  """Add a method to the Task."""
  return SETUP, f"  def {head}:\n    {body}\n\n{SETUP}", message


MODULES: dict[str, Change] = {
  "syntax": (SETUP, "  def setup(self)", "<line>: SyntaxError: expected ':'"),
  "import": ("import torch", "import torchh", "<line>: ModuleNotFoundError: No module named 'torchh'"),
  "no dataclass": ("@dataclass\n", "", "task '<file>': Config is no dataclass: write @dataclass above it"),
  "field without a type": ("reward_height: float =", "reward_height =", "<line>: TypeError: 'reward_height'"),
  "default of another type": field("count: int = base.option(0.5, '')", f"{DEFAULTS}env.count: Value '0.5'"),
  "Config without a family": ("Config(base.Config)", "Config", "Config has no substeps of 1 or more: write"),
  "Task without a family": ("Task(base.Task)", "Task", "task '<file>': Task takes no config: write class"),
  "no Task": ("class Task(", "class Pendulum(", "task '<file>' is a module without a class Task"),
  "PPO of an unknown key": settings("{'lrr': 1e-3}", f"{DEFAULTS}unknown key 'ppo.lrr'; the nearest is"),
  "PPO is a list": settings("[]", "task '<file>': PPO is no dictionary: write PPO"),
  "weight of no term": (FIELD, "  reward_efort:", "reward_effort: Config has no such field, nearest"),
  "no weight": (FIELD, "  reward_effort: float | None = None\n  other:", "reward_effort=None is not a"),
  "noise on no block": field("noise_sped: float = 0.1", "noise_sped: observe() has no 'sped', nearest: '"),
  "half a step late": field("delay_policy: float = 0.5", "delay_policy=0.5 is not a whole number of 0 or"),
}
METHODS: dict[str, Change] = {
  "no reward": ("def reward(", "def pay(", "Task has no reward(): write def reward(self)"),
  "misspelt": ("def terminated(", "def terminate(", "<line>: nothing calls terminate(): write terminated(),"),
  "no self": ("def terminated(self)", "def terminated()", "<line>: terminated() cannot be called as it is"),
  "static": ("  def terminated(", "  @staticmethod\n  def terminated(", "<line>: terminated() cannot be"),
  "an own reset": ("def initial_state(", "def reset(", "<line>: a task has no reset() of its own: write"),
  "controls returned": method("control(self)", "return self.action", "control() returns a tensor, which is"),
  "vary what cannot": attribute("vary = ('body_mas',)", "vary: 'body_mas' cannot vary; the nearest"),
  "vary is a text": attribute("vary = ('body_mass')", "vary is a str: write vary = ('body_mass',)"),
  "a choice of none": attribute("choices = (0,)", "choices = (0,): each is a number of choices, 2 or more"),
  "unknown outputs": attribute("outputs = ('xposs',)", "output 'xposs' is unknown; outputs are: xpos,"),
  "an event returns nothing": (
    f"self.best = {BUFFER}\n",
    f"self.best = {BUFFER}\n    self.every(1, 2, self.push)\n\n  def push(self): self.sim.qvel.add_(1)\n",
    "push() returns None (is a return missing?): return tensors by name, {'name': tensor}",
  ),
}
TENSORS: dict[str, Change] = {
  "reward of two dimensions": (HEIGHT, HEIGHT.replace("[:, 0]", ""), "reward() 'height' has shape [16, 1]"),
  "reward is a number": (EFFORT, "1.0", "reward() 'effort' is a float: return a tensor [num_envs]"),
  "reward on another device": (
    EFFORT,
    "torch.zeros(16, device='meta')",
    "reward() 'effort' is on meta, not c",
  ),
  "reward is nan": (EFFORT, "(self.action[:, 0] * 0).log() * 0", "reward() 'effort' is nan after the first"),
  "reward is huge": (EFFORT, f"{EFFORT} + 1e9", "reward() 'effort' is 1e+09 after the first step, in every "),
  "reward without names": (f'{{{HEIGHT}, "effort": {EFFORT}}}', EFFORT, "reward() returns a tensor: return"),
  "no return": (f"return {{{HEIGHT}", f"{{{HEIGHT}", "reward() returns None (is a return missing?): return "),
  "the host asks": (
    f"return {{{HEIGHT}",
    f"if self.sim.qpos > 0:\n      pass\n    return {{{HEIGHT}",
    "<line>, in reward: RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
  ),
  "terminated is a number": (FAST, "self.sim.qvel[:, 0]", "terminated() is of torch.float32, not"),
  "success is a number": method("success(self)", "return self.best", "success() is of torch.float32, not"),
  "metrics of two dimensions": method(
    "metrics(self)", "return {'angle': self.sim.qpos}", "metrics() 'angle' has shape [16, 1], not [16]: "
  ),
  "blocks without a group": (f'{{"policy": {BLOCKS}}}', BLOCKS, "observe() returns no blocks by group:"),
  "a group misspelt": ('{"policy": ', '{"polic": ', "observe() returns the groups ['polic']: they are"),
  "a style without a reference": (
    f'{{"policy": {BLOCKS}}}',
    f'{{"policy": {BLOCKS}, "style": {BLOCKS}}}',
    "the group 'style' of observe() and self.style_reference, which setup() sets, need each other: write ",
  ),
  "an empty group": (BLOCKS, "{}", "observe() 'policy' is empty: give it a block"),
  "a block of one environment": (SPEED, f"{SPEED}[0]", "observe() 'policy' 'speed' has shape [1], not [16]"),
  "a block is nan": (SPEED, f"{SPEED} / 0 * 0", "observe() 'policy' 'speed' is nan after the first step, in"),
  "the state changed by looking": (
    "angle = self.sim.qpos\n",
    "angle = self.sim.qpos\n    angle += torch.randn_like(angle)\n",
    "observe() changes the simulation in place: let it work on a copy, .clone()",
  ),
  "a buffer changed by looking": (
    "angle = self.sim.qpos\n",
    "angle = self.sim.qpos\n    self.best += 1\n",
    "observe() changes self.best in place: let it work on a copy, .clone()",
  ),
  "a start of unknown names": ('{"qpos"', '{"qposs"', "initial_state() names 'qposs', nearest: 'qpos'"),
  "a start of one dimension": ("(1,), -pi", "(), -pi", "initial_state() 'qpos' has shape [16], not [16, 1]:"),
  "a start is nan": (START, f"{START} / 0 * 0", "self.sim.qpos is nan after the first step, in every "),
  "a start of no purpose": ('"start angle", (1,)', "(1,)", "<line>, in initial_state: TypeError: 'float'"),
  "a buffer rebound": (BEST, "self.best = self.best + 1.0", "self.best was rebound, which changes nothing"),
  "a view rebound": (BEST, "self.sim.qpos = self.sim.qpos.clamp(-3, 3)", "self.sim.qpos was rebound"),
  "a part of a buffer": (BUFFER, "self.buffer(1)[:, 0]", "a buffer has no name: write self.<name> ="),
  "a late buffer": (BEST, "self.late = self.buffer()", "<line>, in update: buffer() allocates permanent"),
  "an unknown joint": (BUFFER, "self.qpos_of('hinj')", "<line>, in setup: KeyError: no joint 'hinj'; the"),
  "a joint named twice": (BUFFER, "self.qpos_of('hinge', 'hinge')", "<line>, in setup: hinge, hinge are"),
  "a quantity that is not computed": (
    BEST,
    "self.sim.geom_xmat",
    "<line>, in update: AttributeError: 'Simulation' object has no attribute 'geom_xmat'; name in outputs ",
  ),
}
ROBOTS: dict[str, Change] = {
  "none": ("robot =", "robott =", "Task has no robot: write robot = <MJCF file or text>"),
  "forgotten": ("robot = ", "robot = None\n  text = ", "a model is a file or MJCF text, not None: give its"),
  "no such file": ("robot = ", "robot = 'pendulum.xml'\n  text = ", "no model file 'pendulum.xml' in"),
  "a tag left open": ("</worldbody>", "", "MJCF: XML parse error 14, Error=XML_ERROR_MISMATCHED_ELEMENT "),
  "an unknown element": ("<joint", "<jointt", "MJCF: XML Error: Schema violation: unrecognized element, E"),
  "time runs back": ('step="0.01"', 'step="-0.01"', "MJCF: option: timestep=-0.01 is not positive: write"),
  "what the engine lacks": ("Euler", "implicit", "MJCF: option: integrator implicit (which load_model(..., "),
  "no actuator": (
    '<motor joint="hinge" gear="3" ctrllimited="true" ctrlrange="-1 1"/>',
    "",
    "the task has no actions: give the robot an actuator, or write action_names()",
  ),
  "no range of controls": ('ctrllimited="true" ctrlrange="-1 1"', "", "actuator 0 has no finite ctrlrange"),
}
