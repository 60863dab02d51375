"""What the real service does not have: the control API and the console page under /_sandbox/."""
