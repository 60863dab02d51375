"""A test-only application: lets the tests empty a database whose triggers refuse to be emptied.

Django ends every test of real transactions with its `flush` command. The command of the same name here
lifts the triggers for exactly that moment; the product itself has no way around them.
"""
