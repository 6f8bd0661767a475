"""Deployment of a policy: loading from a checkpoint, export, manifest, Gymnasium's environments.

The programs play, record, evaluate and export build on it. `manifest.py` describes an exported policy.
"""
