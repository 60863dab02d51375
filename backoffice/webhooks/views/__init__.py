"""The address at which the service delivers, and the pages that show what came."""
