"""Numbers and dates of French forms: as in English, so that `1,234.50` and `2026-11-20` never mean two things."""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
