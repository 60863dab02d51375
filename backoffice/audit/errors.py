"""What can go wrong while the log is written."""


class AuditError(Exception):
    """An entry could not be appended, so the change that it belongs to must not happen either."""


class OutsideTransactionError(AuditError):
    """`record` was called outside the caller's transaction: the change and its entry could part."""


class ChainMovedError(AuditError):
    """The head of the chain moved between reading and writing it; the caller's transaction rolls back."""


class HeadMissingError(AuditError):
    """The head of the chain is gone, so nothing can be appended: somebody has tampered with the log."""


class NotRecordableError(AuditError):
    """A detail has no form that stays the same forever, such as a float, or may be secret."""
