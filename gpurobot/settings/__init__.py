"""Settings of a training: their names, types, defaults and checks, from files and from words `key=value`."""
