"""What a person chooses, under /account/notifications/, and what was not delivered, under /settings/system/."""

from django.urls import path

from backoffice.notifications import pages

app_name = "notifications"
urlpatterns = [
    path("account/notifications/", pages.preferences, name="preferences"),
    path("account/notifications/chat/", pages.chat_channel, name="chat_channel"),
    path("account/notifications/chat/delete/", pages.delete_chat_channel, name="delete_chat_channel"),
    path("account/notifications/test/", pages.send_test, name="send_test"),
    path("settings/system/notifications/", pages.undelivered, name="undelivered"),
]
