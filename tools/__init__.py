"""Programs that drive the whole product from outside: the demo, the smoke test, the benchmark and the deployment
check.
"""
