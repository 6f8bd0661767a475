"""Physics beside MuJoCo C and UniLab's engines; kernels that are built, for a CPU and for a GPU."""
