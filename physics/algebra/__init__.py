"""Vectors, rotations, spatial (6D) algebra and symmetric matrices, sparse or in blocks, on traced scalars.

Numbers that are known while tracing (zeros, unit axes, identity frames) fold away here. Nothing in this
package depends on a model.
"""
