"""API keys and their rotation."""

from django.urls import path

from backoffice.integration.views import keys, rotation

app_name = "integration"
urlpatterns = [
    path("", keys.keys, name="keys"),
    path("list/", keys.listed, name="listed"),
    path("secret/<uuid:pk>/", keys.secret, name="secret"),
    path("rotation/", rotation.rotation, name="rotation"),
    path("rotation/start/", rotation.start, name="start"),
    path("rotation/<uuid:pk>/test/", rotation.test, name="test"),
    path("rotation/<uuid:pk>/watch/", rotation.watch, name="watch"),
    path("rotation/<uuid:pk>/finish/", rotation.finish, name="finish"),
    path("rotation/<uuid:pk>/abandon/", rotation.abandon, name="abandon"),
]
