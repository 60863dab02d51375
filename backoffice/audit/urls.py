from django.urls import path

from backoffice.audit import views

app_name = "audit"
urlpatterns = [
    path("", views.entry_list, name="list"),
    path("verify/", views.verify, name="verify"),
]
