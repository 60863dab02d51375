"""The addresses of the product as `COUNTERSIGN_DEMO` sets it up."""

from django.urls import include, path

from backoffice import urls

urlpatterns = [*urls.urlpatterns, path("demo/", include("backoffice.demo.urls"))]
