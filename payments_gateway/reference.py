"""Reference data that the service expects its callers to know."""

from collections.abc import Mapping

#: Code that the Central Bank of Nigeria gave a bank -> the bank's usual name.
BANKS: Mapping[str, str] = {
    "044": "Access Bank",
    "023": "Citibank Nigeria",
    "050": "Ecobank Nigeria",
    "070": "Fidelity Bank",
    "011": "First Bank of Nigeria",
    "214": "First City Monument Bank",
    "103": "Globus Bank",
    "058": "GTBank",
    "301": "Jaiz Bank",
    "082": "Keystone Bank",
    "303": "Lotus Bank",
    "107": "Optimus Bank",
    "104": "Parallex Bank",
    "076": "Polaris Bank",
    "105": "PremiumTrust Bank",
    "101": "Providus Bank",
    "106": "Signature Bank",
    "221": "Stanbic IBTC Bank",
    "068": "Standard Chartered Bank",
    "232": "Sterling Bank",
    "100": "SunTrust Bank",
    "302": "TAJBank",
    "102": "Titan Trust Bank",
    "032": "Union Bank of Nigeria",
    "033": "United Bank for Africa",
    "215": "Unity Bank",
    "035": "Wema Bank",
    "057": "Zenith Bank",
}
