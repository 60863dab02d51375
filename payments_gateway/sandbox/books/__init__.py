"""The books of the simulation: what a movement does to them, when it settles, and the history they begin with."""
