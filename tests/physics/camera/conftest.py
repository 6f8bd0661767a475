from tests.physics.camera.reference import _draws

__all__ = ["_draws"]
