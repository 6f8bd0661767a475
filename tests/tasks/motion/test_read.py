"""Files of retargeting tools become the same clip; what they leave open is asked for."""

import itertools
import pickle
import zlib

import numpy as np
import pytest

from tasks.core.errors import SettingError
from tasks.motion.read import Reading, read_file, write_clips, write_npz

JOINTS = ("hip", "knee")
FRAMES = 5
rng = np.random.default_rng(0)
PLACE, ANGLES = rng.normal(size=(FRAMES, 3)), rng.normal(size=(FRAMES, 2))
TURN = rng.normal(size=(FRAMES, 4))
TURN /= np.linalg.norm(TURN, axis=1, keepdims=True)  # w, x, y, z
XYZW = np.roll(TURN, -1, axis=1)


def reading(**said):
  return Reading(JOINTS, **said)


def csv_text(header="", turn=XYZW, angles=ANGLES):
  rows = np.concatenate([PLACE, turn, angles], 1)
  return header + "\n".join(",".join(map(repr, row.tolist())) for row in rows) + "\n"


def npz(path, **arrays):
  np.savez(path, **arrays)
  return path


def check(clip):
  np.testing.assert_allclose(clip.root_pos, PLACE)
  np.testing.assert_allclose(clip.root_quat, TURN)
  np.testing.assert_allclose(clip.joint_pos, ANGLES)
  assert clip.joints == JOINTS
  assert clip.fps == 30.0


def test_a_csv_without_a_header_as_of_lafan1(tmp_path):
  (tmp_path / "dance.csv").write_text(csv_text())
  clip = read_file(tmp_path / "dance.csv", reading(quaternion="xyzw", fps=30.0))
  check(clip)
  assert clip.name == "dance"


@pytest.mark.parametrize(("order", "turn"), [("qw,qx,qy,qz", TURN), ("rot_x,rot_y,rot_z,rot_w", XYZW)])
def test_a_header_says_the_order_of_quaternion_and_joints(order, turn, tmp_path):
  header = f"x,y,z,{order},knee,spare,hip\n"
  angles = np.stack([ANGLES[:, 1], 0 * ANGLES[:, 0], ANGLES[:, 0]], 1)
  (tmp_path / "a.csv").write_text(csv_text(header, turn, angles))
  check(read_file(tmp_path / "a.csv", reading(fps=30.0)))


def test_joints_of_a_file_without_names_are_named_by_the_user(tmp_path):
  (tmp_path / "a.csv").write_text(csv_text(angles=ANGLES[:, ::-1]))
  check(read_file(tmp_path / "a.csv", reading(quaternion="xyzw", fps=30.0, joints=("knee", "hip"))))


def test_an_npz_of_beyondmimic_has_the_root_as_first_body(tmp_path):
  bodies = np.stack([PLACE, PLACE + 1], 1), np.stack([TURN, -TURN], 1)
  path = npz(tmp_path / "a.npz", fps=[30], joint_pos=ANGLES, body_pos_w=bodies[0], body_quat_w=bodies[1])
  check(read_file(path, reading()))


@pytest.mark.parametrize("names", [*itertools.product(("root_pos", "root_trans_offset"), ("dof_pos", "dof"))])
def test_an_npz_of_tools_for_amass_says_no_order(names, tmp_path):
  arrays = {names[0]: PLACE, "root_rot": XYZW, names[1]: ANGLES, "fps": 30}
  path = npz(tmp_path / "a.npz", **arrays)
  check(read_file(path, reading(quaternion="xyzw")))
  with pytest.raises(SettingError, match=r"does not say the order of its quaternions: add env\.motion_quat"):
    read_file(path, reading())


def pkl(path, **arrays):
  path.write_bytes(pickle.dumps(arrays))
  return path


def test_a_pkl_of_gmr_has_quaternions_with_w_last(tmp_path):
  arrays = {"fps": 30, "root_pos": PLACE, "root_rot": XYZW, "dof_pos": ANGLES}
  said = {"local_body_pos": None, "link_body_list": ["pelvis", "head"]}
  check(read_file(pkl(tmp_path / "a.pkl", **arrays, **said), reading()))
  with pytest.raises(SettingError, match=r"does not say the order of its quaternions"):
    read_file(pkl(tmp_path / "b.pkl", **arrays), reading())


def test_reading_a_pkl_runs_no_code(tmp_path, capsys):
  class Greeting:
    def __reduce__(self):
      return print, ("hello",)

  path = pkl(tmp_path / "a.pkl", root_pos=Greeting())
  with pytest.raises(SettingError, match=r"a\.pkl cannot be read: it holds builtins\.print and not only arr"):
    read_file(path, reading())
  assert capsys.readouterr().out == ""


OF_JOBLIB = b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n."  # where an array of its files begins


@pytest.mark.parametrize("content", [OF_JOBLIB, zlib.compress(OF_JOBLIB)])
def test_a_pkl_of_joblib_says_how_to_convert_it(content, tmp_path):
  path = tmp_path / "a.pkl"
  path.write_bytes(content)
  with pytest.raises(SettingError, match=r"a\.pkl cannot be read: it is of joblib, whose") as caught:
    read_file(path, reading())
  remedy = f"numpy.savez('{tmp_path}/a.npz', **next(iter(joblib.load('{path}').values())))"
  assert str(caught.value).endswith(remedy)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs", pickle.dumps([1.0, 2.0])])
def test_a_pkl_that_is_no_dictionary_of_arrays_ends_in_one_line(content, tmp_path):
  (tmp_path / "a.pkl").write_bytes(content)
  with pytest.raises(SettingError, match=r"a\.pkl cannot be read: .*; write it as \.npz") as caught:
    read_file(tmp_path / "a.pkl", reading())
  assert "\n" not in str(caught.value)


def test_a_users_names_stand_for_foreign_ones_but_contradict_none(tmp_path):
  header = "x,y,z,qx,qy,qz,qw,Knee,Hip\n"
  (tmp_path / "a.csv").write_text(csv_text(header, angles=ANGLES[:, ::-1]))
  check(read_file(tmp_path / "a.csv", reading(fps=30.0, joints=("knee", "hip"))))
  (tmp_path / "b.csv").write_text(csv_text(header.lower(), angles=ANGLES[:, ::-1]))
  check(read_file(tmp_path / "b.csv", reading(fps=30.0, joints=("knee", "hip"))))
  with pytest.raises(SettingError, match="has the robot's names at its columns: leave"):
    read_file(tmp_path / "b.csv", reading(fps=30.0, joints=("hip", "knee")))


def test_another_rate_than_the_files_is_told(tmp_path):
  arrays = {"fps": 30, "root_pos": PLACE, "root_quat": TURN, "joint_pos": ANGLES}
  path = npz(tmp_path / "a.npz", **arrays, joint_names=[b"hip", b"knee"])
  check(read_file(path, reading(fps=30.0)))
  with pytest.raises(SettingError, match=r"frames per second are 30\.0: leave env\.motion_fps=60\.0 out"):
    read_file(path, reading(fps=60.0))


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"fps": []}, r"fps is \[\]: write a number of frames per second"),
    ({"joint_pos": np.full((FRAMES, 2), "bent")}, "joints has values of type <U4: write numbers"),
    ({"fps": "fast"}, r"fps is \['fast'\]: write a number of frames per second"),
    ({"joint_pos": 3.0}, r"joints \[1, 1\]: write \[frames, 3\]"),
    ({"root_pos": np.zeros((FRAMES, 0, 3))}, r"shapes are position \[5, 0, 3\]"),
    ({"joint_names": np.array(["hip", "knee"], object)}, "no NPZ file of plain arrays, and 'joint_names' is"),
    ({"joint_names": ["hip", "hip"]}, "no joint 'knee'"),
    (
      {"joint_names": ["hip", "knee", "hip"], "joint_pos": np.zeros((FRAMES, 3))},
      "2 of its columns are 'hip': give each its own name",
    ),
  ],
)
def test_odd_arrays_of_an_npz_are_told(changes, message, tmp_path):
  arrays = {"fps": 30, "root_pos": PLACE, "root_quat": TURN, "joint_pos": ANGLES} | changes
  with pytest.raises(SettingError, match=message) as caught:
    read_file(npz(tmp_path / "a.npz", **arrays), reading())
  assert "a.npz" in str(caught.value)


def test_what_is_written_says_all_of_itself(tmp_path):
  (tmp_path / "a.csv").write_text(csv_text())
  write_npz(tmp_path / "b.npz", read_file(tmp_path / "a.csv", reading(quaternion="xyzw", fps=30.0)))
  check(read_file(tmp_path / "b.npz", Reading(JOINTS)))
  assert read_file(tmp_path / "b.npz", Reading(JOINTS[1:])).joints == ("knee",)


def test_quaternions_that_were_interpolated_linearly_become_unit_again(tmp_path):
  (tmp_path / "a.csv").write_text(csv_text(turn=0.95 * XYZW))
  check(read_file(tmp_path / "a.csv", reading(quaternion="xyzw", fps=30.0)))


def test_clips_are_written_at_a_rate_with_names_of_their_own(tmp_path):
  (tmp_path / "a b.csv").write_text(csv_text())
  clip = read_file(tmp_path / "a b.csv", reading(quaternion="xyzw", fps=30.0))
  names = write_clips(tmp_path, [clip, clip], 60.0)
  assert names == ["motion_0_a_b.npz", "motion_1_a_b.npz"]
  assert read_file(tmp_path / names[1], Reading(JOINTS)).fps == 60.0


@pytest.mark.parametrize(
  ("text", "said", "message"),
  [
    (csv_text(), {}, "quaternions and its frames per second: add env.motion_quaternion=xyzw or wxyz and"),
    (csv_text(), {"quaternion": "xyzw"}, "does not say its frames per second: add env.motion_fps=30"),
    (csv_text("x,y,z,w,x,y,z,hip,knee\n", TURN), {"quaternion": "xyzw"}, "are wxyz: leave env.motion_quat"),
    ("", {}, "the file has no frames"),
    (csv_text(), {"quaternion": "xyzw", "fps": 1e-9}, "1e-09 frames per second: write a number from"),
    (
      csv_text(angles=np.full((FRAMES, 2), 1e30)),
      {"quaternion": "xyzw", "fps": 1.0},
      r"frame 0: column 0 of joints is 1e\+30: write numbers up to 1e\+06",
    ),
    (csv_text().replace(",", ";"), {}, "has one column, of '.*': write commas between the numbers"),
    ("time,x,y,z,qx,qy,qz,qw,hip\n" + csv_text(), {}, "first column is 'time': cut it"),
    (csv_text() + "1,2\n", {}, "line 6: it has 2 columns and not 9"),
    (csv_text() + "1,2,3,4,5,6,7,8,nine\n", {}, "line 6: it has 'nine', which is no number"),
    (csv_text().splitlines()[0], {"quaternion": "xyzw", "fps": 1.0}, "it has 1 frames: a motion has two"),
    (csv_text(turn=2 * XYZW), {"quaternion": "xyzw", "fps": 1.0}, "frame 0: its quaternion has the norm 2 "),
    (
      csv_text(angles=np.full((FRAMES, 2), np.nan)),
      {"quaternion": "xyzw", "fps": 1.0},
      "frame 0: column 0 of joints is nan",
    ),
    (
      csv_text(angles=np.zeros((FRAMES, 3))),
      {"quaternion": "xyzw", "fps": 1.0},
      "has 3 joints, and the robot has 2: list the file's joints",
    ),
    (csv_text("x,y,z,qx,qy,qz,qw,hip,kne\n"), {"fps": 1.0}, "no joint 'knee' of the robot, nearest: 'kne'"),
  ],
)
def test_mistakes_of_a_csv_name_what_is_wrong_and_the_fix(text, said, message, tmp_path):
  (tmp_path / "a.csv").write_text(text)
  with pytest.raises(SettingError, match=message) as error:
    read_file(tmp_path / "a.csv", reading(**said))
  assert str(tmp_path / "a.csv") in str(error.value)
  assert "\n" not in str(error.value)


def test_a_packed_file_of_endless_zeros_is_not_read(tmp_path):
  path = tmp_path / "a.npz"
  np.savez_compressed(path, root_pos=np.zeros(1000))
  content = bytearray(path.read_bytes())
  entry = content.index(b"PK\x01\x02")
  content[entry + 24 : entry + 28] = (2**32 - 2).to_bytes(4, "little")  # its size, unpacked
  path.write_bytes(content)
  with pytest.raises(SettingError, match=r"its arrays are 4,294,967,294 bytes: at most 2,147,483,648$"):
    read_file(path, reading())


@pytest.mark.parametrize("damage", ["content", "encrypted"])
def test_a_damaged_npz_ends_in_one_line(damage, tmp_path):
  path = tmp_path / "a.npz"
  np.savez_compressed(path, root_pos=PLACE)
  content = bytearray(path.read_bytes())
  entry = content.index(b"PK\x01\x02")
  if damage == "content":
    content[60:90] = b"\xff" * 30
  else:
    content[entry + 8] = 1
  path.write_bytes(content)
  with pytest.raises(SettingError, match=r"a\.npz cannot be read: it is no NPZ file of plain arrays"):
    read_file(path, reading())


def test_mistakes_of_files(tmp_path):
  with pytest.raises(SettingError, match=r"there is no motion file '.*none.csv'"):
    read_file(tmp_path / "none.csv", reading())
  with pytest.raises(SettingError, match=r"a motion is a \.csv, \.npz, \.pkl or \.bvh file"):
    read_file(tmp_path / "a.txt", reading())
  (tmp_path / "broken.npz").write_bytes(b"PK")
  with pytest.raises(SettingError, match="no NPZ file of plain arrays"):
    read_file(tmp_path / "broken.npz", reading())
  with pytest.raises(SettingError, match="has the keys poses: a motion has root_pos") as caught:
    read_file(npz(tmp_path / "b.npz", poses=PLACE), reading())
  assert str(caught.value).count("root_pos, root_rot, dof_pos") == 1
  with pytest.raises(SettingError, match=r"shapes are position \[4, 3\], turn \[5, 4\]"):
    read_file(
      npz(tmp_path / "c.npz", root_pos=PLACE[:4], root_quat=TURN, joint_pos=ANGLES, fps=30), reading()
    )
