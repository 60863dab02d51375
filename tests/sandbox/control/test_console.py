"""The console page: what it shows, what its forms do, and who may not post to it."""

import re
from urllib.parse import urlsplit

import pytest
import requests

from tests.sandbox.conftest import PAYMENT, Service
from tests.sandbox.raw_http import connected, received


def console(service: Service, path: str = "/") -> str:
    response = requests.get(service.process.control + path, timeout=30)
    assert response.status_code == 200
    return response.text


def press(service: Service, form: str, button: str, **typed: str) -> requests.Response:
    """Send a form of the page as a browser does, and follow it back."""
    data = {"press": button, **{f"{form}-{name}": value for name, value in typed.items()}}
    return requests.post(f"{service.process.control}/console/{form}", data=data, timeout=30)


def note(response: requests.Response) -> str:
    assert response.status_code == 200
    assert [each.status_code for each in response.history] == [303]
    found = re.search(r'role="status">(.*?)</p>', response.text)
    assert found
    return found[1]


def test_it_says_what_it_is_and_shows_one_time_codes_and_balances(service: Service) -> None:
    service.withdraw(accountName="<b>Ada</b>")
    page = console(service)
    assert "no real money moves" in page
    assert service.process.issued_otp() in page
    assert str(service.process.balance("NGN")) in page
    assert "&lt;b&gt;Ada&lt;/b&gt;, Access Bank 0123456789" in page


def test_it_shows_keys_by_their_hash_the_callback_url_and_deliveries(service: Service) -> None:
    url = f"{service.process.address}/hook?<x>"
    service.session.put(f"{service.process.url}/callbackurl", json={"callbackUrl": url}, timeout=30)
    service.withdraw()
    page = console(service)
    assert "first key" in page
    assert url.replace("<x>", "&lt;x&gt;") in page or url not in page
    assert "Transaction updated" in page


def test_it_shows_faults_with_their_counters(service: Service) -> None:
    service.process.fault("balances.list", "drop", when="after_read", times=3, containing="<NGN>", skip=1)
    page = console(service)
    assert "containing “&lt;NGN&gt;”" in page
    assert "when after_read" in page
    assert "skips 1 request first" in page


def test_only_the_page_without_forms_refreshes_itself(service: Service) -> None:
    assert 'http-equiv="refresh"' not in console(service)
    watch = console(service, "/watch")
    assert '<meta http-equiv="refresh" content="5">' in watch
    assert "<form" not in watch
    assert service.process.issued_otp() in watch


def test_settlement_is_paused_resumed_and_done_at_once(service: Service) -> None:
    service.process.options(token_reuse=True)
    assert "is paused" in note(press(service, "settlement", "pause"))
    service.withdraw()
    assert note(press(service, "settlement", "now")) == "1 order settled."
    service.withdraw()
    press(service, "settlement", "fail")
    assert [row["status"] for row in service.process.ledger()["withdrawals"]] == ["fullfiled", "failed"]
    assert "Settlement is resumed" in note(press(service, "settlement", "resume"))
    assert service.process.options()["settle_after"] == 0


@pytest.mark.parametrize(
    ("button", "minutes", "seconds"), [("hour", "", 3600), ("day", "", 86_400), ("custom", "90", 5400)]
)
def test_the_clock_goes_forward(service: Service, button: str, minutes: str, seconds: int) -> None:
    before = service.process.now()
    note(press(service, "clock", button, minutes=minutes))
    assert seconds <= (service.process.now() - before).total_seconds() < seconds + 60
    assert "ahead of real time" in console(service)


def test_a_deposit_arrives(service: Service) -> None:
    before = service.process.balance("USD")
    response = press(service, "deposit", "deposit", currency="USD", amount="12.50", sender="X & Co")
    assert note(response) == "USD 12.50 received from X &amp; Co."
    assert service.process.balance("USD") - before == 12.5
    assert "X &amp; Co" in console(service)


def test_a_customer_pays_an_open_payment(service: Service) -> None:
    assert "No open payments." in console(service)
    assert service.post("/payment", PAYMENT).status_code == 200
    assert "INV-1" in console(service)
    assert "Pay-in received for INV-1" in note(press(service, "pay-in", "pay", reference="INV-1", amount=""))
    (payment,) = service.process.ledger()["payments"]
    assert payment["state"] == "unconfirmed"


def test_kyc_is_switched(service: Service) -> None:
    note(press(service, "kyc", "off"))
    assert requests.get(f"{service.process.control}/kyc", timeout=30).json() == {"completed": False}
    note(press(service, "kyc", "on"))
    assert requests.get(f"{service.process.control}/kyc", timeout=30).json() == {"completed": True}


def test_faults_are_added_and_cleared(service: Service) -> None:
    typed = {"operation": "balances.list", "number": "", "times": "2", "containing": ""}
    press(service, "fault", "add", what="status-503-before", **typed)
    assert [service.get("/balance").status_code for _ in range(3)] == [503, 503, 200]
    assert "1 fault cleared" in note(press(service, "fault", "clear", what="hide", **typed))
    assert service.process.faults() == []


def test_every_fault_that_is_offered_can_be_added(service: Service) -> None:
    offered = re.findall(
        r'<option value="([a-z0-9_-]+)"', console(service).split('name="fault-what"')[1].split("</select>")[0]
    )
    assert len(offered) > 50
    for what in offered:
        press(service, "fault", "add", operation="*", what=what, number="", times="", containing="")
    assert len(service.process.faults()) == len(offered)


def test_a_reset_forgets_everything(service: Service) -> None:
    service.withdraw()
    service.process.fault("*", "drop", when="before_read")
    assert "sample history of 60 transactions" in note(press(service, "reset", "reset"))
    assert service.process.ledger()["debits"]["count"] == 0
    assert service.process.faults() == []


@pytest.mark.parametrize(
    ("form", "button", "typed", "problem"),
    [
        ("deposit", "deposit", {"currency": "NGN", "amount": "1.234", "sender": "Ada"}, "at most 2 decimals"),
        ("deposit", "deposit", {"currency": "EUR", "amount": "1", "sender": "Ada"}, "Select a valid choice"),
        ("deposit", "deposit", {"currency": "NGN", "amount": "", "sender": "Ada"}, "This field is required"),
        ("deposit", "steal", {"currency": "NGN", "amount": "1", "sender": "Ada"}, "Press one of the buttons"),
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
def test_what_is_wrong_is_said_beside_the_form_and_what_was_typed_is_kept(
    service: Service, form: str, button: str, typed: dict[str, str], problem: str
) -> None:
    before = service.process.ledger()
    response = press(service, form, button, **typed)
    assert response.status_code == 422
    section = response.text.split(f'<section id="{form}">')[1].split("</section>")[0]
    assert problem in section
    kept = typed.get("sender", typed.get("minutes", ""))
    assert f'value="{kept}"' in section or not kept
    assert service.process.ledger() == before
    assert service.process.faults() == []


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
def test_a_form_that_cannot_be_read_is_refused(service: Service, body: bytes, content_type: str) -> None:
    url = f"{service.process.control}/console/deposit"
    response = requests.post(url, data=body, headers={"Content-Type": content_type}, timeout=30)
    assert response.status_code in {400, 422}
    assert service.process.ledger()["debits"]["count"] == 0


def test_a_form_that_is_none_is_refused(service: Service) -> None:
    assert press(service, "steal", "now").status_code == 404


def test_a_note_cannot_be_written_by_an_address(service: Service) -> None:
    assert "Send your keys" not in console(service, "/?note=Send your keys")


class TestForeignPages:
    """A browser says where a request comes from; a program says nothing and is let in."""

    def own(self, service: Service) -> str:
        return service.process.address

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
    def test_a_foreign_page_changes_nothing(
        self, service: Service, headers: dict[str, str], method: str, path: str
    ) -> None:
        service.process.fault("*", "drop", when="before_read")
        body = b'{"currency": "NGN", "amount": "1", "sender": "x"}'
        url = service.process.control + path
        response = requests.request(method, url, data=body, headers=headers, timeout=30)
        assert response.status_code == 403
        assert "cannot change the simulation" in response.json()["message"]
        assert len(service.process.faults()) == 1

    def test_the_page_itself_posts(self, service: Service) -> None:
        headers = {"Origin": service.process.address, "Sec-Fetch-Site": "same-origin"}
        data = {"press": "off"}
        url = f"{service.process.control}/console/kyc"
        assert requests.post(url, data=data, headers=headers, timeout=30).status_code == 200

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1"])
    @pytest.mark.parametrize("path", ["/", "/otp", "/watch"])
    def test_a_foreign_name_of_this_machine_reads_nothing(
        self, service: Service, host: str, path: str
    ) -> None:
        port = urlsplit(service.process.address).port
        for name in (host, f"{host}:{port}"):
            response = requests.get(service.process.control + path, headers={"Host": name}, timeout=30)
            assert response.status_code == 403
            assert response.json()["message"].startswith(f"Host {host} is not this machine")

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:80", "[::1]:8001"])
    def test_names_of_this_machine_are_its_own(self, service: Service, host: str) -> None:
        url = f"{service.process.control}/otp"
        assert requests.get(url, headers={"Host": host}, timeout=30).status_code == 200

    def test_a_program_without_a_host_is_let_in(self, service: Service) -> None:
        with connected(service.process) as connection:
            connection.sendall(b"GET /_sandbox/otp HTTP/1.0\r\n\r\n")
            assert received(connection).status == 200

    def test_no_page_can_frame_it_and_nothing_is_kept(self, service: Service) -> None:
        headers = requests.get(f"{service.process.control}/", timeout=30).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"

    def test_the_provider_itself_asks_nobody_where_they_come_from(self, service: Service) -> None:
        response = requests.post(
            f"{service.process.url}/bank/resolve",
            json={"accountNumber": "0123456789", "bankCode": "044"},
            headers={"Host": "evil.example", "Origin": "https://evil.example"},
            timeout=30,
        )
        assert response.status_code == 200
