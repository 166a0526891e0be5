"""The addresses: the admin, the API, and what probes ask."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from sizing.api.health import healthz, metrics

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    re_path(r"^healthz/?$", healthz, name="healthz"),
    re_path(r"^metrics/?$", metrics, name="metrics"),
    path("api/v1/", include("sizing.api.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "llmgw_admin.errors.bad_request"
handler403 = "llmgw_admin.errors.forbidden"
handler404 = "llmgw_admin.errors.not_found"
handler500 = "llmgw_admin.errors.server_error"
