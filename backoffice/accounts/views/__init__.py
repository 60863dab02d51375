"""The pages of sign-in and of one's own account."""
