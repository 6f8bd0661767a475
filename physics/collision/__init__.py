"""Collision detection: one file per family of geom pairs; found contacts are pushed onto compacted lists."""
