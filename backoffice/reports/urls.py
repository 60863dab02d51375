from django.urls import path

from backoffice.reports import views

app_name = "reports"
urlpatterns = [
    path("", views.report_list, name="list"),
    path("<slug:name>.csv", views.csv, name="csv"),
]
