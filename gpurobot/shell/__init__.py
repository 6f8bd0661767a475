"""The command line: programs by name, the settings of their words, help texts, completion."""
