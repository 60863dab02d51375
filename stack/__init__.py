"""Runs the whole product on one machine, for the demo, the smoke test, the bench and the tests of real processes."""
