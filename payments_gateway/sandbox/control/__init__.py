"""The control API and the sandbox console under /_sandbox/, which the real provider lacks."""
