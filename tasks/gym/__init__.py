"""Tasks equal to Gymnasium's MuJoCo environments, version 5; `half_cheetah.py` is `gym/HalfCheetah-v5`."""
