"""The product, and the rivals under /rivals/."""

from django.urls import include, path

from stack.bench.rivals import views
from stack.bench.rivals.admin import site

urlpatterns = [
    path("rivals/admin/", site.urls),
    path("rivals/model.csv", views.model_csv),
    path("rivals/values.csv", views.values_csv),
    path("rivals/import-export.csv", views.import_export_csv),
    path("rivals/offset/", views.offset),
    path("", include("backoffice.urls")),
]
