"""Where the service delivers its webhooks, and where people see what came."""

from django.urls import path

from backoffice.webhooks.views import deliveries, receiver

app_name = "webhooks"
urlpatterns = [
    path("hooks/<str:secret>/", receiver.receive, name="receive"),
    path("webhooks/", deliveries.deliveries, name="deliveries"),
    path("webhooks/<int:pk>/", deliveries.delivery, name="delivery"),
    path("webhooks/<int:pk>/look-again/", deliveries.look_again, name="look_again"),
]
