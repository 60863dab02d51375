"""URLs of API keys and their rotation."""

from django.urls import path

from backoffice.api_keys import pages

app_name = "api_keys"
urlpatterns = [
    path("", pages.key_list_page, name="keys"),
    path("list/", pages.key_list_part, name="list"),
    path("secret/<uuid:pk>/", pages.secret_page, name="secret"),
    path("rotation/", pages.rotation_page, name="rotation"),
    path("rotation/start/", pages.act, {"action": "start"}, name="start"),
    path("rotation/<uuid:pk>/test/", pages.act, {"action": "test"}, name="test"),
    path("rotation/<uuid:pk>/monitor/", pages.monitor, name="monitor"),
    path("rotation/<uuid:pk>/finish/", pages.act, {"action": "finish"}, name="finish"),
    path("rotation/<uuid:pk>/abandon/", pages.act, {"action": "abandon"}, name="abandon"),
]
