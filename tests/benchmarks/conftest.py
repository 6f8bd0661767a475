from tests.gpurobot.conftest import drawing

__all__ = ["drawing"]  # a fixture
