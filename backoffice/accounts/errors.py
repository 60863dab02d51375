"""Errors of sign-in and account management. Each message can be shown as it is."""


class AccountsError(Exception):
    """The request was refused. Nothing changed except the audit log."""


class SignInRefusedError(AccountsError):
    """Wrong e-mail address or password; the message does not say which."""

    def __init__(self) -> None:
        super().__init__("The e-mail address or the password is not right. Nobody was signed in.")


class LockedOutError(AccountsError):
    """Too many wrong passwords for this e-mail address from this network address."""

    def __init__(self) -> None:
        super().__init__(
            "Too many wrong passwords for this e-mail address from where you are. "
            "Nothing was done. Wait 30 minutes, then try again."
        )


class PasswordRefusedError(AccountsError):
    """A person who is signed in gave a wrong current password."""

    def __init__(self) -> None:
        super().__init__("This is not your present password. Nothing was changed.")


class EnrolmentNotAllowedError(AccountsError):
    """Replacing an authenticator needs a fresh second factor, and an enrolment begun in this session."""

    def __init__(self) -> None:
        super().__init__("This authenticator cannot be set up any more. Nothing changed. Start again.")


class UnknownRoleError(AccountsError):
    """A role that is not defined in `Role`."""


class EmailTakenError(AccountsError):
    """Another account has this e-mail address."""
