"""A production installation on one machine, against the sandbox: nginx, its certificate, and `make rehearse`."""
