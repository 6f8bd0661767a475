"""Low-level messages of Unitree's robots on DDS: layout, checksum, and a connection.

Fields, order and types follow the IDL of unitree_sdk2: unitree_go for Go2, unitree_hg for G1.
"""

import dataclasses
import re
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gpurobot.extras import require_extra
from gpurobot.settings.config import ConfigError

# Structures of each package: names and types of the fields, a type with its count.
_IMU = "quaternion 4f4 gyroscope 3f4 accelerometer 3f4 rpy 3f4 temperature "
_MOTOR = "mode u1 q f4 dq f4 ddq f4 tau_est f4 "
_SERVO = "mode u1 q f4 dq f4 tau f4 kp f4 kd f4 reserve "
_HEAD = "head 2u1 level_flag u1 frame_reserve u1 sn 2u4 version 2u4 bandwidth u2 "
LAYOUTS = {
  "unitree_go": {
    "IMUState_": _IMU + "u1",
    "MotorState_": _MOTOR + "q_raw f4 dq_raw f4 ddq_raw f4 temperature u1 lost u4 reserve 2u4",
    "BmsState_": "version_high u1 version_low u1 status u1 soc u1 current i4 cycle u2 bq_ntc 2u1 mcu_ntc 2u1 "
    "cell_vol 15u2",
    "LowState_": _HEAD + "imu_state IMUState_ motor_state 20MotorState_ bms_state BmsState_ foot_force 4i2 "
    "foot_force_est 4i2 tick u4 wireless_remote 40u1 bit_flag u1 adc_reel f4 temperature_ntc1 u1 "
    "temperature_ntc2 u1 power_v f4 power_a f4 fan_frequency 4u2 reserve u4 crc u4",
    "MotorCmd_": _SERVO + "3u4",
    "BmsCmd_": "off u1 reserve 3u1",
    "LowCmd_": _HEAD + "motor_cmd 20MotorCmd_ bms_cmd BmsCmd_ wireless_remote 40u1 led 12u1 fan 2u1 gpio u1 "
    "reserve u4 crc u4",
  },
  "unitree_hg": {
    "IMUState_": _IMU + "i2",
    "MotorState_": _MOTOR + "temperature 2i2 vol f4 sensor 2u4 motorstate u4 reserve 4u4",
    "LowState_": "version 2u4 mode_pr u1 mode_machine u1 tick u4 imu_state IMUState_ "
    "motor_state 35MotorState_ wireless_remote 40u1 reserve 4u4 crc u4",
    "MotorCmd_": _SERVO + "u4",
    "LowCmd_": "mode_pr u1 mode_machine u1 motor_cmd 35MotorCmd_ reserve 4u4 crc u4",
  },
}
# Names of the motors, in the order of the messages.
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_SIDES = ("left", "right")
MOTORS = {
  "unitree_go": [f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")],
  "unitree_hg": [f"{side}_{part}" for side in _SIDES for part in _LEG]
  + ["waist_yaw", "waist_roll", "waist_pitch"]
  + [f"{side}_{part}" for side in _SIDES for part in _ARM],
}
TOPICS = {"LowState_": "rt/lowstate", "LowCmd_": "rt/lowcmd"}
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_CONFIG = """<CycloneDDS><Domain Id="any">
<General><Interfaces><NetworkInterface name="{}"/></Interfaces></General>
<Discovery><Tag>{}</Tag></Discovery></Domain></CycloneDDS>"""


@dataclasses.dataclass(frozen=True)
class Structure:
  """Structure of a message."""

  record: np.dtype[Any]  # as a compiler of C lays it out, which the checksum is about
  message: Any  # class that cyclonedds encodes
  parts: dict[str, "Structure"]  # structures inside, by field


def structures(package: str) -> dict[str, Structure]:
  """Return the structures of a package by name; raise ConfigError if cyclonedds is missing."""
  with require_extra("unitree"):
    from cyclonedds import idl  # noqa: PLC0415 (optional)
    from cyclonedds.idl import annotations  # noqa: PLC0415
  made: dict[str, Structure] = {}
  for name, text in LAYOUTS[package].items():
    record: list[Any] = []
    hints: dict[str, Any] = {}
    parts: dict[str, Structure] = {}
    for field, count, kind in re.findall(r"(\w+) (\d*)([A-Za-z]\w*)", text):
      if kind in made:
        parts[field] = made[kind]
      element = made[kind].record if kind in made else np.dtype(kind)
      hint = made[kind].message if kind in made else getattr(idl.types, element.name)
      record.append((field, element, (int(count),) if count else ()))
      hints[field] = idl.types.array[hint, int(count)] if count else hint
    words = {"typename": f"{package}.msg.dds_.{name}"}
    new = types.new_class(name, (idl.IdlStruct,), words, _body(hints))
    message = annotations.final(annotations.autoid("sequential")(dataclasses.dataclass(new)))
    made[name] = Structure(np.dtype(record, align=True), message, parts)
  return made


def _body(hints: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
  return lambda namespace: namespace.update({"__module__": __name__, "__annotations__": hints})


def checksum(record: np.ndarray[Any, Any]) -> int:
  """Return the checksum of all words of 32 bits but the last, which holds it.

  CRC-32/MPEG-2 of each word's most significant byte first: zlib's CRC with all bits reversed.
  """
  content = np.frombuffer(record.tobytes(), "<u4")[:-1].astype(">u4").tobytes()
  reversed_crc = zlib.crc32(content.translate(_REVERSED)) ^ 0xFFFFFFFF
  return int(f"{reversed_crc:032b}"[::-1], 2)


class Link:
  """Connection that writes one of the two messages and reads the other, as records of NumPy."""

  def __init__(self, package: str, writes: str, reads: str, network: tuple[str, int, str]) -> None:
    """Open it on an interface and a domain, for partners with the same tag; ConfigError if there is none."""
    known = structures(package)
    from cyclonedds import core, domain, pub, sub, topic  # noqa: PLC0415 (optional)

    interface, number, tag = network
    try:
      self._domain = domain.Domain(number, _CONFIG.format(interface, tag))
      participant = domain.DomainParticipant(number)
    except core.DDSException as error:
      raise ConfigError(f"unitree.interface={interface}: cyclonedds cannot open it") from error
    topics = {name: topic.Topic(participant, TOPICS[name], known[name].message) for name in TOPICS}
    self._writer = pub.DataWriter(participant, topics[writes])
    self._reader = sub.DataReader(participant, topics[reads])
    self._structure, self._known = known[writes], known[reads]
    self.written = np.zeros((), self._structure.record)
    self._absent = {0} if reads == "LowState_" else set()
    self.refused = 0  # messages with a wrong checksum

  def write(self) -> None:
    """Send the record `written`, with its checksum."""
    self.written["crc"] = checksum(self.written)
    self._writer.write(_message(self._structure, self.written))

  def newest(self) -> np.ndarray[Any, Any] | None:
    """Return the newest message since the last call, None without one or if its checksum is wrong.

    The state of a robot may have the checksum 0, as simulators leave it out.
    """
    found = [one for one in self._reader.take(1) if isinstance(one, self._known.message)]
    if not found:
      return None
    record = np.zeros((), self._known.record)  # with zeros between its fields, as the checksum covers them
    record[()] = _numbers(self._known, found[-1])
    if record["crc"].item() not in self._absent | {checksum(record)}:
      self.refused += 1
      return None
    return record

  def close(self) -> None:
    """End the connection: cyclonedds closes what nothing refers to any more."""
    del self._reader, self._writer, self._domain


def _message(structure: Structure, record: Any) -> Any:
  """Return a record as an object that cyclonedds encodes."""
  values = []
  for field in structure.record.names or ():
    value, part = record[field], structure.parts.get(field)
    if part is None:
      values.append(value.tolist())
    else:
      values.append([_message(part, one) for one in value] if value.ndim else _message(part, value))
  return structure.message(*values)


def _numbers(structure: Structure, message: Any) -> tuple[Any, ...]:
  """Return a message's numbers, nested as its record is."""
  values = []
  for field in structure.record.names or ():
    value, part = getattr(message, field), structure.parts.get(field)
    if part is not None:
      several = isinstance(value, list)
      value = [_numbers(part, one) for one in value] if several else _numbers(part, value)
    values.append(list(value) if isinstance(value, bytes) else value)
  return tuple(values)
