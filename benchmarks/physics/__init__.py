"""Physics beside MuJoCo C and mujoco_warp, and the time to build its kernels."""
