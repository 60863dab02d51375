"""The page of a report is of use after its file has come, too."""

import pytest
from playwright.sync_api import expect

from tests.browser.people import AUDITOR, People
from tests.browser.steps import button, path_of, press

pytestmark = [pytest.mark.browser, pytest.mark.stack]


@pytest.mark.parametrize("name", ["statement", "transactions"])
def test_a_double_click_on_download_downloads_one_file_and_keeps_the_page_usable(
    people: People, name: str
) -> None:
    page = people.page_of(AUDITOR)
    page.goto(f"/reports/{name}/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    with page.expect_download() as file:
        button(page, "Download file").dblclick()
    assert file.value.suggested_filename.endswith(".csv")
    expect(button(page, "Download file")).not_to_have_attribute("aria-busy", "true")
    assert len(sent) == 1
    file.value.path()  # a person downloads one file at a time, so the first has to end
    with page.expect_download() as again:
        press(page, "Download file")
    again.value.path()
    expect(button(page, "Download file")).not_to_have_attribute("aria-busy", "true")
    press(page, "Export in background")
    page.wait_for_url("**/reports/exports/*/")
    assert path_of(page).startswith("/reports/exports/")
