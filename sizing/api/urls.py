"""The addresses under /api/v1/."""

from __future__ import annotations

from django.urls import re_path

from sizing.api.routers import OPTIONAL_SLASH, SlashRouter
from sizing.api.views import answers, collections, documents, imports, inventory, kubernetes, refreshes

router = SlashRouter()
router.register("models", collections.Models, "model")
router.register("profiles", collections.Profiles, "profile")
router.register("variants", collections.Variants, "variant")
router.register("nodes", collections.Nodes, "node")
router.register("replicas", collections.Replicas, "replica")
router.register("measurements", collections.Measurements, "measurement")
router.register("targets", collections.Targets, "target")
router.register("refreshes", refreshes.Refreshes, "refresh")
router.register("imports", imports.Imports, "import")
router.register("answers", answers.Answers, "answer")

urlpatterns = [
    # Before the collections, for "import" is no measurement's id.
    re_path(rf"^measurements/import{OPTIONAL_SLASH}", imports.ImportFiles.as_view(), name="import-files"),
    *router.urls,
    re_path(rf"^inventory{OPTIONAL_SLASH}", inventory.InventoryDocument.as_view(), name="inventory"),
    re_path(rf"^inventory/kubernetes{OPTIONAL_SLASH}", kubernetes.Cluster.as_view(), name="kubernetes"),
    re_path(rf"^schema{OPTIONAL_SLASH}", documents.Schema.as_view(), name="schema"),
    re_path(rf"^docs{OPTIONAL_SLASH}", documents.Docs.as_view(), name="docs"),
    re_path(r"", documents.Nowhere.as_view()),
]
