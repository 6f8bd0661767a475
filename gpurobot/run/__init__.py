"""Files of a training run: folder, checkpoints, log, videos, profile, dumps of diverged environments.

During training only this package reads from the device. The programs that use a finished run are in
`gpurobot/`; loading a policy outside of training is in `gpurobot/deploy`.
"""
