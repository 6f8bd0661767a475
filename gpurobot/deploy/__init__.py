"""A policy outside of training: loaded from a checkpoint, exported, described, in Gymnasium's environments.

The programs play, record, evaluate and export begin here. What an exported policy has to be told is in
`manifest.py`.
"""
