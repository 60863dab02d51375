"""Runs the whole product on one machine: the demo, the smoke test, the bench, and the tests that need real processes."""
