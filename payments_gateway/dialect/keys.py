"""Open points of key management, whose five operations have no shape in the specification."""

from dataclasses import dataclass

from payments_gateway.dialect.points import point

_KEYS = "Authentication, 8: key management"


@dataclass(frozen=True, kw_only=True)
class KeyPoints:
    """Paths, requests and answers of key management, and where a new key is."""

    key_base: str = point("v4", "likely", _KEYS, "Base address of the five operations: v2 or v4.")
    key_generate_path: str = point(
        "/user/api-key", "sure", _KEYS, "Path of: generate. In use, too: /user/apikey."
    )
    key_list_path: str = point("/user/api-keys", "sure", _KEYS, "Path of: list. In use, too: /user/apikeys.")
    key_scopes_path: str = point(
        "/user/api-key/scopes", "sure", _KEYS, "Path of: view scopes. In use, too: /user/apikey-scope."
    )
    key_invalidate_path: str = point(
        "/user/api-key/invalidate",
        "sure",
        _KEYS,
        "Path of: invalidate. In use, too: /user/invalidate-apikey.",
    )
    key_delete_path: str = point(
        "/user/api-key", "sure", _KEYS, "Path of: delete. In use, too: /user/apikey."
    )
    key_name_member: str = point("keyname", "likely", _KEYS, "Generate: the name of the new key.")
    key_scope_member: str = point("scope", "likely", _KEYS, "Generate: what it may do, a code of the scopes.")
    key_replaced_member: str = point(
        "apikey", "likely", _KEYS, "Generate: the old key that the new one replaces."
    )
    key_days_member: str = point("expirationInDays", "likely", _KEYS, "Generate: the new key's life in days.")
    key_months_member: str = point(
        "expirationInMonths", "likely", _KEYS, "Generate: the new key's life in months."
    )
    key_otp_member: str = point("otp", "likely", _KEYS, "Generate: the one-time token.")
    key_invalidate_member: str = point("apikey", "likely", _KEYS, "Invalidate: the key.")
    key_hash_query: str = point("apikeyHash", "likely", _KEYS, "Delete: query name of the key's short hash.")
    created_key_paths: tuple[tuple[str, ...], ...] = point(
        (("key",), ("apikey",)),
        "likely",
        _KEYS,
        "Where in `data` a new key is, the only time that it is shown.",
    )
    created_key_expiry_paths: tuple[tuple[str, ...], ...] = point(
        (("expires",), ("expiration",), ("Expiration",)),
        "hint",
        _KEYS,
        "Where in `data` a new key says when it expires.",
    )
    key_list_paths: tuple[tuple[str, ...], ...] = point(
        (("Apikeys",), ("apikeys",), ()),
        "likely",
        _KEYS,
        "Where in `data` the keys are: a member, or a bare list.",
    )
    listed_key_hash_members: tuple[str, ...] = point(
        ("Apikey",), "likely", _KEYS, "List: what tells the short hash of a key, needed."
    )
    listed_key_name_members: tuple[str, ...] = point(
        ("Keyname",), "likely", _KEYS, "List: what tells the name of a key."
    )
    listed_key_username_members: tuple[str, ...] = point(
        ("Username",), "likely", _KEYS, "List: what tells whose key it is."
    )
    listed_key_expirable_members: tuple[str, ...] = point(
        ("Expirable",), "likely", _KEYS, "List: what tells whether a key expires."
    )
    listed_key_expiry_members: tuple[str, ...] = point(
        ("Expiration",), "likely", _KEYS, "List: what tells when a key expires."
    )
    listed_key_deletion_members: tuple[str, ...] = point(
        ("DeletedAt",), "likely", _KEYS, "List: what tells when a key was deleted, if it was."
    )
