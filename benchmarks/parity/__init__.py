"""Parity with MuJoCo C of public robot files, and of tasks with Gymnasium and dm_control."""
