"""The URL at which the provider delivers webhooks, and the pages about webhooks."""

from django.urls import path

from backoffice.webhooks import endpoint, pages

app_name = "webhooks"
urlpatterns = [
    path("hooks/<str:secret>/", endpoint.receive, name="receive"),
    path("settings/webhooks/", pages.delivery_list, name="deliveries"),
    path("settings/webhooks/<int:pk>/", pages.delivery_detail, name="delivery"),
    path("settings/webhooks/<int:pk>/process-again/", pages.process_again, name="process_again"),
    path("settings/webhooks/address/", pages.own_address, name="own_address"),
    path("settings/webhooks/test/", pages.send_test, name="send_test"),
]
