"""Arithmetic of products and convolutions: as precise as float32, unless asked otherwise, and repeatable."""

import torch


def set_arithmetic(tf32: bool) -> None:
  """Set how torch multiplies float32 matrices and convolves, in the whole process; `tf32`: in TF32 on CUDA.

  By default cuDNN convolves in TF32, and with the fastest algorithms: their gradients are summed in an
  order that differs from run to run.
  """
  torch.set_float32_matmul_precision("high" if tf32 else "highest")
  torch.backends.cudnn.allow_tf32 = tf32
  torch.backends.cudnn.deterministic = True
