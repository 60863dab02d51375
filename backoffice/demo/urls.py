"""The pages that only the demo has."""

from django.urls import path

from backoffice.demo import mailbox

app_name = "demo"
urlpatterns = [
    path("mailbox/", mailbox.mailbox, name="mailbox"),
    path("mailbox/<str:name>/", mailbox.mail_as_html, name="mail_as_html"),
]
