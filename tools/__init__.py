"""Programs for development, CI and releases: demo and trial, smoke test, rehearsal, restore drill, upgrade check,
benchmarks, tables of the documentation, message catalogues, and checks of deployment and dependencies.
"""
