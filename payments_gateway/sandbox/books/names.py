"""Nigerian people, firms and their bank accounts: invented, plausible, and always the same for the same account."""

import hashlib

from payments_gateway.reference import BANKS

PEOPLE = (
    (
        (
            "Adebayo",
            "Folake",
            "Tunde",
            "Yetunde",
            "Babatunde",
            "Funmilayo",
            "Segun",
            "Bukola",
            "Kehinde",
            "Temitope",
        ),
        (
            "Adeyemi",
            "Ogunleye",
            "Balogun",
            "Akinola",
            "Oyelaran",
            "Olatunji",
            "Ajayi",
            "Bankole",
            "Afolabi",
            "Odukoya",
        ),
    ),
    (
        ("Chinedu", "Adaeze", "Ngozi", "Emeka", "Ifeoma", "Obinna", "Chioma", "Uchenna", "Nneka", "Kelechi"),
        ("Okonkwo", "Eze", "Obi", "Nwosu", "Okafor", "Igwe", "Umeh", "Anyanwu", "Chukwu", "Okeke"),
    ),
    (
        ("Aisha", "Musa", "Ibrahim", "Fatima", "Sani", "Hauwa", "Abdullahi", "Zainab", "Yusuf", "Halima"),
        ("Bello", "Abubakar", "Danjuma", "Suleiman", "Garba", "Lawal", "Yakubu", "Tanko", "Idris", "Aliyu"),
    ),
    (
        ("Ese", "Efe", "Ebiere", "Tonye", "Ekaette", "Idongesit", "Aniekan", "Osaze", "Ivie", "Preye"),
        ("Edet", "Bassey", "Ekpo", "Briggs", "Amadi", "Akpan", "Etim", "Omoruyi", "Igho", "Dokubo"),
    ),
)
"""Given names and family names, by the part of the country they come from."""

PLACES = (
    "Lekki",
    "Zaria",
    "Aba",
    "Onitsha",
    "Ikeja",
    "Kano",
    "Jos",
    "Calabar",
    "Ibadan",
    "Warri",
    "Enugu",
    "Abeokuta",
)
TRADES = (
    "Mills",
    "Cold Stores",
    "Logistics",
    "Packaging",
    "Farms",
    "Haulage",
    "Supermarkets",
    "Foods",
    "Stores",
)
ABROAD = (
    "Atlas Commodities LLC",
    "Blue Harbour Trading Ltd",
    "Cedar & Finch Imports Inc",
    "Golden Delta FZE",
    "Nordwind Handel GmbH",
    "Orchid Foods Pte Ltd",
)


def holder_of(account_number: str, bank_code: str) -> str | None:
    """The holder's name in capitals, as banks print it; None where no such account exists.

    An account exists at a known bank when its number has ten digits and does not end in 0000.
    """
    if bank_code not in BANKS or not _is_account_number(account_number):
        return None
    digest = hashlib.sha256(f"{bank_code}/{account_number}".encode()).digest()
    return (firm(digest) if digest[0] % 10 == 0 else person(digest)).upper()


def person(digest: bytes) -> str:
    """A name of two or three parts, chosen by the bytes."""
    given, family = PEOPLE[digest[1] % len(PEOPLE)]
    first, second = given[digest[2] % len(given)], given[digest[3] % len(given)]
    middle = f" {second}" if digest[4] % 3 == 0 and second != first else ""
    return f"{first}{middle} {family[digest[5] % len(family)]}"


def firm(digest: bytes) -> str:
    """The name of a company, chosen by the bytes."""
    return f"{PLACES[digest[1] % len(PLACES)]} {TRADES[digest[2] % len(TRADES)]} Ltd"


def _is_account_number(text: str) -> bool:
    return len(text) == 10 and text.isascii() and text.isdigit() and not text.endswith("0000")
