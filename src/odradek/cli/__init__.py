"""The command line: starts things, wires them together, prints."""
