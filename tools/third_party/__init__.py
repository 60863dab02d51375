"""Third-party components of an installation: their list (CycloneDX), and their known vulnerabilities (pip-audit)."""
