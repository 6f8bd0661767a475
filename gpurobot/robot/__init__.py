"""Runner of an exported policy: robots behind one interface, controller, limits, watchdog and recorder."""
