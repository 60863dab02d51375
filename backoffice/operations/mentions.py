"""What a text that people type may mean in an operation: its reference, its account, the service's id, or words."""

import re

from django.db.models import Exists, OuterRef, Q

from backoffice.operations.models import Attempt

_LETTERS = "0-9A-HJKMNP-TV-Z"
_BEGINNING = re.compile(rf"[A-Z]-[{_LETTERS}]{{2,6}}")
_WITHOUT_HYPHEN = re.compile(rf"([A-Z])([{_LETTERS}]{{6}})")


def mentioning(text: str) -> Q:
    """Every operation that has to do with the text in any of these ways."""
    by_id = Attempt.objects.filter(operation=OuterRef("pk"), service_transaction_id=text)
    return named_by(text) | saying(text) | Q(Exists(by_id))


def named_by(text: str) -> Q:
    """By the account that is paid, or the beginning of the reference.

    The beginning is a range: both engines read it from the index. No letter of a reference is behind Z, in the order of
    any language.
    """
    named, reference = Q(beneficiary_account=as_account(text)), as_reference(text)
    if reference:
        named |= Q(reference__gte=reference, reference__lte=reference.ljust(12, "Z"))
    return named


def saying(text: str) -> Q:
    """By the words in its sentence, or in what is said of the other end."""
    return (
        Q(counterparty__icontains=text) | Q(counterparty_detail__icontains=text) | Q(sentence__icontains=text)
    )


def as_reference(text: str) -> str:
    """The reference, or at least three characters of its beginning; empty if the text is none."""
    written = text.upper()
    if whole := _WITHOUT_HYPHEN.fullmatch(written):
        return "-".join(whole.groups())
    return written if _BEGINNING.fullmatch(written) else ""


def as_account(text: str) -> str:
    """Account numbers are often written in groups."""
    return re.sub(r"[\s-]", "", text).lower() if re.fullmatch(r"[\d\s-]+", text) else text.lower()
