"""The URL at which the provider delivers webhooks, and the pages about webhooks."""

from django.urls import path

from backoffice.webhooks import endpoint, pages

app_name = "webhooks"
urlpatterns = [
    path("hooks/<str:secret>/", endpoint.receive, name="receive"),
    path("settings/webhooks/", pages.delivery_list, name="deliveries"),
    path("settings/webhooks/<int:pk>/", pages.delivery_detail, name="delivery"),
    path("settings/webhooks/<int:pk>/check-again/", pages.check_again, name="check_again"),
]
