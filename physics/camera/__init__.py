"""Cameras: images of depth, colour, geoms and normals of every environment, by rays through pixel centres.

A traced program puts the geoms before the camera, as in any other part of the engine. A kernel written by
hand then follows the rays: its lanes on a CPU are neighbouring pixels, which meet the same geoms.
"""
