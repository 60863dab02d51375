from django.urls import path

from backoffice.audit import pages

app_name = "audit"
urlpatterns = [
    path("", pages.entry_list, name="list"),
    path("verify/", pages.verify, name="verify"),
]
