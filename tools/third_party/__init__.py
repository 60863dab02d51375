"""The parts of others in an installation: their list, and their known vulnerabilities."""
