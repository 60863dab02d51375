"""How numbers and dates are shown and accepted in each language (Django's FORMAT_MODULE_PATH).

The same in all of them, so that `1,234.50` and `2026-11-20` never mean two things.
"""
