"""The record of a run: folder, checkpoints, log, videos, profile, dumps of diverged environments.

The only reads of the device during training are here. Programs that use a finished run are above; what a
policy needs outside of training is in `gpurobot/deploy`.
"""
