"""The production form on one machine, against the sandbox."""
