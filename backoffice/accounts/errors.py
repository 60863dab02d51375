"""What can be refused at sign-in and in the care of accounts. Each message may be shown as it is."""


class AccountsError(Exception):
    """The request was refused and nothing changed but the audit log."""


class SignInRefusedError(AccountsError):
    """E-mail address and password do not belong together; it is not said which one is wrong."""

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
    """Somebody who is signed in gave a wrong present password."""

    def __init__(self) -> None:
        super().__init__("This is not your present password. Nothing was changed.")


class EnrolmentNotAllowedError(AccountsError):
    """An authenticator may be replaced only with a fresh second factor, and only the one begun here."""

    def __init__(self) -> None:
        super().__init__("This authenticator cannot be set up any more. Nothing changed. Start again.")


class UnknownRoleError(AccountsError):
    """A role that is not in the table of roles."""


class EmailTakenError(AccountsError):
    """Another person signs in with this e-mail address already."""
