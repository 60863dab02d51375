"""Formats of numbers and dates where Django's own would differ from the English ones (FORMAT_MODULE_PATH)."""
