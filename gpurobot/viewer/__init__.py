"""Views of a trained policy: its robot in a browser, in MuJoCo's own window, in a video."""
