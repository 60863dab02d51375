"""Errors of writing the audit log."""


class AuditError(Exception):
    """An entry could not be appended, so the change that it records must not happen either."""


class OutsideTransactionError(AuditError):
    """`record` was called outside a transaction: the change could be stored without its entry."""


class ChainMovedError(AuditError):
    """Another transaction appended between reading and updating the head of the chain; the caller rolls back."""


class HeadMissingError(AuditError):
    """The row with the head of the chain is missing: the log has been tampered with, and nothing can be
    appended.
    """


class NotRecordableError(AuditError):
    """A detail has no stable form, such as a float, or may be secret."""
