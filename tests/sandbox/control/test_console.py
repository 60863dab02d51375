"""The console page: what it shows, what its forms do, and who may not post to it."""

import re
from urllib.parse import urlsplit

import pytest
import requests

from tests.sandbox.conftest import PAYMENT, SandboxClient
from tests.sandbox.raw_http import connected, received


def console(provider: SandboxClient, path: str = "/") -> str:
    response = requests.get(provider.process.control + path, timeout=30)
    assert response.status_code == 200
    return response.text


def press(provider: SandboxClient, form: str, button: str, **typed: str) -> requests.Response:
    """Send a form of the page as a browser does, and follow it back."""
    data = {"press": button, **{f"{form}-{name}": value for name, value in typed.items()}}
    return requests.post(f"{provider.process.control}/console/{form}", data=data, timeout=30)


def note(response: requests.Response) -> str:
    assert response.status_code == 200
    assert [each.status_code for each in response.history] == [303]
    found = re.search(r'role="status">(.*?)</p>', response.text)
    assert found
    return found[1]


def test_the_console_shows_that_it_is_a_simulation_with_codes_and_balances(provider: SandboxClient) -> None:
    provider.withdraw(accountName="<b>Ada</b>")
    page = console(provider)
    assert "no real money moves" in page
    assert provider.process.issued_otp() in page
    assert str(provider.process.balance("NGN")) in page
    assert "&lt;b&gt;Ada&lt;/b&gt;, Access Bank 0123456789" in page


def test_the_console_is_in_the_language_of_the_browser_and_the_api_in_english(
    provider: SandboxClient,
) -> None:
    french = {"Accept-Language": "fr"}
    page = requests.get(f"{provider.process.control}/", headers=french, timeout=30).text
    assert '<html lang="fr">' in page
    assert "Simulation : aucun mouvement de fonds réel" in page.replace("\u202f", " ").replace("\xa0", " ")
    assert str(provider.process.balance("NGN")) in page, "numbers are written in one way"
    refused = requests.get(f"{provider.process.url}/v2/balance", headers=french, timeout=30)
    assert refused.json()["message"] == requests.get(refused.url, timeout=30).json()["message"]


def test_the_console_tells_the_two_types_of_one_time_codes_apart(provider: SandboxClient) -> None:
    page = console(provider)
    app, _, issued = page.partition("Issued by the provider: type <code>otp</code>")
    app = app.partition("Authenticator app: type <code>totp</code>")[2]
    assert provider.process.totp() in app
    assert "Countersign asks for this code" in app
    assert provider.process.issued_otp() not in app
    assert provider.process.issued_otp() in issued
    assert "valid until used" in issued


def test_the_console_shows_key_hashes_callback_url_and_deliveries(provider: SandboxClient) -> None:
    url = f"{provider.process.address}/hook?<x>"
    provider.session.put(f"{provider.process.url}/callbackurl", json={"callbackUrl": url}, timeout=30)
    provider.withdraw()
    page = console(provider)
    assert "first key" in page
    assert url.replace("<x>", "&lt;x&gt;") in page or url not in page
    assert "Transaction updated" in page


def test_the_console_shows_faults_with_their_counters(provider: SandboxClient) -> None:
    provider.process.fault("balances.list", "drop", when="after_read", times=3, containing="<NGN>", skip=1)
    page = console(provider)
    assert "containing “&lt;NGN&gt;”" in page
    assert "when after_read" in page
    assert "skips 1 request first" in page


def test_only_the_page_without_forms_refreshes_itself(provider: SandboxClient) -> None:
    assert 'http-equiv="refresh"' not in console(provider)
    watch = console(provider, "/watch")
    assert '<meta http-equiv="refresh" content="5">' in watch
    assert "<form" not in watch
    assert provider.process.issued_otp() in watch


def test_settlement_can_be_paused_resumed_and_forced(provider: SandboxClient) -> None:
    provider.process.options(token_reuse=True)
    assert "is paused" in note(press(provider, "settlement", "pause"))
    provider.withdraw()
    assert note(press(provider, "settlement", "now")) == "1 order settled."
    provider.withdraw()
    press(provider, "settlement", "fail")
    assert [row["status"] for row in provider.process.ledger()["withdrawals"]] == ["fullfiled", "failed"]
    assert "Settlement is running" in note(press(provider, "settlement", "resume"))
    assert provider.process.options()["settle_after"] == 0


@pytest.mark.parametrize(
    ("button", "minutes", "seconds"), [("hour", "", 3600), ("day", "", 86_400), ("custom", "90", 5400)]
)
def test_the_clock_can_be_advanced(provider: SandboxClient, button: str, minutes: str, seconds: int) -> None:
    before = provider.process.now()
    note(press(provider, "clock", button, minutes=minutes))
    assert seconds <= (provider.process.now() - before).total_seconds() < seconds + 60
    assert "ahead of real time" in console(provider)


def test_a_deposit_can_be_made(provider: SandboxClient) -> None:
    before = provider.process.balance("USD")
    response = press(provider, "deposit", "deposit", currency="USD", amount="12.50", sender="X & Co")
    assert note(response) == "USD 12.50 received from X &amp; Co."
    assert provider.process.balance("USD") - before == 12.5
    assert "X &amp; Co" in console(provider)


def test_an_open_payment_can_be_paid(provider: SandboxClient) -> None:
    assert "No open payments." in console(provider)
    assert provider.post("/payment", PAYMENT).status_code == 200
    assert "INV-1" in console(provider)
    assert "Pay-in received for INV-1" in note(press(provider, "pay-in", "pay", reference="INV-1", amount=""))
    (payment,) = provider.process.ledger()["payments"]
    assert payment["state"] == "unconfirmed"


def test_kyc_can_be_switched(provider: SandboxClient) -> None:
    note(press(provider, "kyc", "off"))
    assert requests.get(f"{provider.process.control}/kyc", timeout=30).json() == {"completed": False}
    note(press(provider, "kyc", "on"))
    assert requests.get(f"{provider.process.control}/kyc", timeout=30).json() == {"completed": True}


def test_faults_are_added_and_cleared(provider: SandboxClient) -> None:
    typed = {"operation": "balances.list", "number": "", "times": "2", "containing": ""}
    press(provider, "fault", "add", what="status-503-before", **typed)
    assert [provider.get("/balance").status_code for _ in range(3)] == [503, 503, 200]
    assert "1 fault cleared" in note(press(provider, "fault", "clear", what="hide", **typed))
    assert provider.process.faults() == []


def test_every_offered_fault_can_be_added(provider: SandboxClient) -> None:
    offered = re.findall(
        r'<option value="([a-z0-9_-]+)"',
        console(provider).split('name="fault-what"')[1].split("</select>")[0],
    )
    assert len(offered) > 50
    for what in offered:
        press(provider, "fault", "add", operation="*", what=what, number="", times="", containing="")
    assert len(provider.process.faults()) == len(offered)


def test_a_reset_clears_everything(provider: SandboxClient) -> None:
    provider.withdraw()
    provider.process.fault("*", "drop", when="before_read")
    assert "sample history of 60 transactions" in note(press(provider, "reset", "reset"))
    assert provider.process.ledger()["debits"]["count"] == 0
    assert provider.process.faults() == []


@pytest.mark.parametrize(
    ("form", "button", "typed", "problem"),
    [
        ("deposit", "deposit", {"currency": "NGN", "amount": "1.234", "sender": "Ada"}, "at most 2 decimals"),
        ("deposit", "deposit", {"currency": "EUR", "amount": "1", "sender": "Ada"}, "Select a valid choice"),
        ("deposit", "deposit", {"currency": "NGN", "amount": "", "sender": "Ada"}, "This field is required"),
        ("deposit", "steal", {"currency": "NGN", "amount": "1", "sender": "Ada"}, "Use one of the buttons"),
        ("clock", "custom", {"minutes": ""}, "Enter the number of minutes"),
        ("clock", "custom", {"minutes": "-5"}, "greater than or equal to 1"),
        ("clock", "custom", {"minutes": "5256001"}, "less than or equal to 5256000"),
        ("pay-in", "pay", {"reference": "none"}, "Select a valid choice"),
        (
            "fault",
            "add",
            {"operation": "balances.list", "what": "hide"},
            "operation must be transactions.page",
        ),
        ("fault", "add", {"operation": "*", "what": "truncate", "number": "1.5"}, "number must be whole"),
        (
            "fault",
            "add",
            {"operation": "*", "what": "delay-before", "number": "9999"},
            "must be at most 3600",
        ),
        ("fault", "add", {"operation": "*", "what": "nothing"}, "Select a valid choice"),
    ],
)
def test_errors_are_reported_at_the_form_and_input_kept(
    provider: SandboxClient, form: str, button: str, typed: dict[str, str], problem: str
) -> None:
    before = provider.process.ledger()
    response = press(provider, form, button, **typed)
    assert response.status_code == 422
    section = response.text.split(f'<section id="{form}">')[1].split("</section>")[0]
    assert problem in section
    kept = typed.get("sender", typed.get("minutes", ""))
    assert f'value="{kept}"' in section or not kept
    assert provider.process.ledger() == before
    assert provider.process.faults() == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"press=deposit&deposit-sender=%ff%fe&deposit-amount=%00", "application/x-www-form-urlencoded"),
        (b"x" * 3_000_000, "application/x-www-form-urlencoded"),
        (b"&".join(b"a%d=1" % number for number in range(2000)), "application/x-www-form-urlencoded"),
        (b"--x\r\nnonsense", "multipart/form-data; boundary=x"),
        (b"nonsense", "multipart/form-data"),
        (b'{"press": "deposit"}', "application/json"),
        (b"", "text/plain"),
    ],
)
def test_an_unreadable_form_is_refused(provider: SandboxClient, body: bytes, content_type: str) -> None:
    url = f"{provider.process.control}/console/deposit"
    response = requests.post(url, data=body, headers={"Content-Type": content_type}, timeout=30)
    assert response.status_code in {400, 422}
    assert provider.process.ledger()["debits"]["count"] == 0


def test_a_body_that_is_not_a_form_is_refused(provider: SandboxClient) -> None:
    assert press(provider, "steal", "now").status_code == 404


def test_a_notice_cannot_be_injected_by_the_url(provider: SandboxClient) -> None:
    assert "Send your keys" not in console(provider, "/?note=Send your keys")


class TestForeignPages:
    """A browser says where a request comes from; a program says nothing and is let in."""

    def own(self, provider: SandboxClient) -> str:
        return provider.process.address

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:9"},
            {"Origin": ""},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
    )
    @pytest.mark.parametrize(
        ("method", "path"),
        [("POST", "/reset"), ("POST", "/console/reset"), ("POST", "/deposits"), ("DELETE", "/faults")],
    )
    def test_a_cross_site_post_is_refused(
        self, provider: SandboxClient, headers: dict[str, str], method: str, path: str
    ) -> None:
        provider.process.fault("*", "drop", when="before_read")
        body = b'{"currency": "NGN", "amount": "1", "sender": "x"}'
        url = provider.process.control + path
        response = requests.request(method, url, data=body, headers=headers, timeout=30)
        assert response.status_code == 403
        assert "cannot change the simulation" in response.json()["message"]
        assert len(provider.process.faults()) == 1

    def test_a_same_site_post_is_accepted(self, provider: SandboxClient) -> None:
        headers = {"Origin": provider.process.address, "Sec-Fetch-Site": "same-origin"}
        data = {"press": "off"}
        url = f"{provider.process.control}/console/kyc"
        assert requests.post(url, data=data, headers=headers, timeout=30).status_code == 200

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1"])
    @pytest.mark.parametrize("path", ["/", "/otp", "/watch"])
    def test_a_foreign_host_name_is_refused(self, provider: SandboxClient, host: str, path: str) -> None:
        port = urlsplit(provider.process.address).port
        for name in (host, f"{host}:{port}"):
            response = requests.get(provider.process.control + path, headers={"Host": name}, timeout=30)
            assert response.status_code == 403
            assert response.json()["message"].startswith(f"Host {host} is not this machine")

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:80", "[::1]:8001"])
    def test_local_host_names_are_accepted(self, provider: SandboxClient, host: str) -> None:
        url = f"{provider.process.control}/otp"
        assert requests.get(url, headers={"Host": host}, timeout=30).status_code == 200

    def test_a_request_without_a_host_is_accepted(self, provider: SandboxClient) -> None:
        with connected(provider.process) as connection:
            connection.sendall(b"GET /_sandbox/otp HTTP/1.0\r\n\r\n")
            assert received(connection).status == 200

    def test_the_console_cannot_be_framed_and_is_not_cached(self, provider: SandboxClient) -> None:
        headers = requests.get(f"{provider.process.control}/", timeout=30).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"

    def test_the_api_accepts_requests_of_any_origin(self, provider: SandboxClient) -> None:
        response = requests.post(
            f"{provider.process.url}/bank/resolve",
            json={"accountNumber": "0123456789", "bankCode": "044"},
            headers={"Host": "evil.example", "Origin": "https://evil.example"},
            timeout=30,
        )
        assert response.status_code == 200
