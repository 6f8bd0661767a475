"""Physics beside MuJoCo C, mujoco_warp and UniLab's engines; the kernels of a CPU and a GPU."""
