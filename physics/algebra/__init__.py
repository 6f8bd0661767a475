"""Vectors, rotations, spatial (6D) algebra and sparse symmetric matrices, on traced scalars.

What is known while tracing (zeros, unit axes, identity frames) folds away here. Nothing in it knows a model.
"""
