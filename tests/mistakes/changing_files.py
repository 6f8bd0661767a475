"""A user's task with numbers that are not finite, or whose results or surroundings change on the way."""

from tests.mistakes.task_files import BLOCKS, BUFFER, EFFORT, FIELD, HEIGHT, SPEED, Change, field, method

TIMESTEP, IMPORT = 'step="0.01"', "import torch\n"
TERMS = f'{{{HEIGHT}, "effort": {EFFORT}}}'
FORMER = "at first, and now "


def number(old: str, new: str, message: str) -> Change:
  """Write a number into the robot that is not finite."""
  return old, new, f"MJCF: {message} is not finite: write numbers"


def after(head: str, value: str, message: str) -> Change:
  """Let a method return another value from its seventh call on."""
  more = f"{head}\n    self.calls = getattr(self, 'calls', 0) + 1\n    if self.calls > 6: return {value}\n"
  return f"{head}\n", more, message


def paid(value: str, message: str) -> Change:
  return after("  def reward(self):", value, message)


def seen(blocks: str, message: str) -> Change:
  """Let observe() return other blocks; `qpos` is [num_envs, 1]."""
  return after("  def observe(self):", blocks.replace("qpos", "self.sim.qpos"), message)


def added(head: str, body: str, later: str, message: str) -> Change:
  """Add a method that returns `body`, and `later` from its seventh call on."""
  calls = "self.calls = getattr(self, 'calls', 0) + 1"
  return method(head, f"{calls}\n    return {body} if self.calls < 7 else {later}", message)


def first(text: str, message: str) -> Change:
  """Run a line when the file is imported."""
  return IMPORT, f"{IMPORT}{text}\n", message


NONFINITE: dict[str, Change] = {
  "timestep": number(TIMESTEP, 'step="nan"', "option: timestep=nan"),
  "endless gravity": number(TIMESTEP, f'{TIMESTEP} gravity="0 0 inf"', "option: gravity=[ 0. 0. inf]"),
  "damping": number('damping="', 'damping="inf" stiffness="', "joint 'hinge': dof_damping=inf"),
  "gear": number('gear="3"', 'gear="nan"', "actuator 0: actuator_gear=[nan 0. 0. 0. 0. 0.]"),
  "range of controls": ('"-1 1"', '"-1 inf"', "actuator 0 has no finite ctrlrange for the actions: give"),
  "noise": field("noise_speed: float = float('inf')", "noise_speed=inf is not a number of 0 or more"),
  "weight": (FIELD, "  reward_effort: float = float('nan')\n  other:", "reward_effort=nan is not a number:"),
}
CHANGING: dict[str, Change] = {
  "a further term": paid(
    "{'height': self.best, 'effort': self.best, 'more': self.best}",
    f"reward() returned ['height', 'effort'] {FORMER}['height', 'effort', 'more']: return the same in every",
  ),
  "a term of another shape": paid(
    "{'height': self.best, 'effort': self.best[:, None]}", "reward() 'effort' has shape [16, 1], not [16]: "
  ),
  "no terms": paid("None", "reward() returns None (is a return missing?): return tensors by name"),
  "a wider block": seen(
    "{'policy': {'up': qpos, 'side': qpos, 'speed': qpos.repeat(1, 2)}}",
    "observe() returned blocks of the widths ",
  ),
  "a further group": seen(
    "{'policy': {'up': qpos, 'side': qpos, 'speed': qpos}, 'critic': {'up': qpos}}",
    "observe() returned blocks of the widths ",
  ),
  "no groups": seen("None", "observe() returns no blocks by group: return "),
  "terminated for few": after("  def terminated(self):", "self.best[:3] > 2", "terminated() has shape [3]"),
  "other metrics": added(
    "metrics(self)",
    "{'angle': self.best}",
    "{'height': self.best}",
    "the reward terms and metrics of the environments are not the same in every step: angle, height came ",
  ),
  "success": added("success(self)", "None", "self.best > 2", "the environments say of some steps, but not"),
  "an error": added("metrics(self)", "{}", "self.best[99]", "<line>, in metrics: IndexError: index 99 is"),
}
SETTINGS: dict[str, Change] = {
  "dtype": first("torch.set_default_dtype(torch.float64)", "the task changes torch's default dtype to"),
  "device in setup": (
    f"self.best = {BUFFER}",
    f"torch.set_default_device('meta')\n    self.best = {BUFFER}",
    "the task changes torch's default device to meta",
  ),
  "grad mode": first("torch.set_grad_enabled(False)", "the task changes torch's grad mode to False"),
  "null bytes": first("\0", "mine.py: SyntaxError: source code string cannot contain null bytes: save the"),
  "exit": first("raise SystemExit(0)", "<line>: SystemExit: the file ends the program"),
  "no width": (SPEED, f"{SPEED}[:, :0]", "observe() 'policy' 'speed' has shape [16, 0], no numbers: leave"),
  "empty critic": (
    f'{{"policy": {BLOCKS}}}',
    f'{{"policy": {BLOCKS}, "critic": {{}}}}',
    "observe() 'critic' is empty: give it a block",
  ),
  "a number for names": method("action_names(self)", "return 3", "action_names() returns an int: return a"),
  "names that are none": (TERMS, TERMS.replace('"effort"', "3"), "reward() names a tensor 3: a name is a"),
  "complex reward": (EFFORT, f"{EFFORT}.to(torch.complex64)", "reward() 'effort' is of torch.complex64 and"),
  "sparse": (EFFORT, f"{EFFORT}.to_sparse()", "reward() 'effort' is of torch.float32 and torch.sparse"),
  "fewer than no states": field("keep_states: int = -1", "Config has no keep_states of 0 or more: write "),
}
