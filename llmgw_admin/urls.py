"""The addresses: the admin, the API, and what probes ask."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from sizing.api.health import healthz, live, metrics, ready
from sizing.api.routers import OPTIONAL_SLASH
from sizing.api.views.documents import Root

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    re_path(r"^healthz/?$", healthz, name="healthz"),
    re_path(r"^healthz/live/?$", live, name="live"),
    re_path(r"^healthz/ready/?$", ready, name="ready"),
    re_path(r"^metrics/?$", metrics, name="metrics"),
    re_path(rf"^api/v1{OPTIONAL_SLASH}", Root.as_view(), name="api"),
    path("api/v1/", include("sizing.api.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "llmgw_admin.errors.bad_request"
handler403 = "llmgw_admin.errors.forbidden"
handler404 = "llmgw_admin.errors.not_found"
handler500 = "llmgw_admin.errors.server_error"
