"""A list of the Kubernetes cluster that is brought: what it changes, and where the live sync stands."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from sizing.models import ClusterImport


class DifferenceSerializer(serializers.Serializer[Any]):
    """Names of objects of one kind that differ from the inventory."""

    added = serializers.ListField(child=serializers.CharField())
    gone = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())
    moved = serializers.ListField(child=serializers.CharField(), help_text="On other GPUs than before.")
    details = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()), help_text="What changes, by name."
    )


class ClusterChangesSerializer(serializers.Serializer[Any]):
    """What an import changes, or has changed."""

    nodes = DifferenceSerializer()
    replicas = DifferenceSerializer()
    models = DifferenceSerializer()
    rows = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        allow_null=True,
        help_text="Objects created, updated and removed, by kind; null where nothing was written.",
    )


class IgnoredSerializer(serializers.Serializer[Any]):
    """Objects that are not taken, for one reason."""

    kind = serializers.CharField()
    reason = serializers.CharField()
    count = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.CharField(), help_text="The first names.")


class ClusterOutcomeSerializer(serializers.Serializer[Any]):
    """What a list of the cluster says, and what bringing it in changes."""

    dry_run = serializers.BooleanField(help_text="Whether nothing was written.")
    refusals = serializers.ListField(
        child=serializers.CharField(), help_text="With dry_run: why an import would be refused."
    )
    changes = ClusterChangesSerializer()
    ignored = IgnoredSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    report = serializers.DictField(
        help_text="The cluster as it was read: `nodes` by name with their resources and what closes them, "
        "`pods_ignored`, `pods_unplaced`, `orphan_pods`, `soon_free`, `groups`, `warnings`, and sums in "
        "`cluster`."
    )


class ClusterImportSerializer(serializers.ModelSerializer[ClusterImport]):
    """A list that was imported."""

    requested_by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)
    changes = serializers.DictField(
        help_text="By kind of object and what happened: how many, and the first names."
    )

    class Meta:
        model = ClusterImport
        fields = ["id", "name", "size", "partial", "trigger", "requested_by", "finished_at", "changes"]
        read_only_fields = fields


class SyncSerializer(serializers.Serializer[Any]):
    """The sync with the live cluster."""

    configured = serializers.BooleanField(help_text="Whether the settings name a cluster to follow.")
    state = serializers.ChoiceField(
        ["off", "waiting", "listing", "watching", "failing", "missing"],
        help_text="missing: no worker runs the sync.",
    )
    server = serializers.CharField()
    listed_at = serializers.DateTimeField(allow_null=True, help_text="The last whole list.")
    seen_at = serializers.DateTimeField(
        allow_null=True, help_text="When the cluster last told all of itself, by a list or a watch."
    )
    seen_age_s = serializers.FloatField(allow_null=True)
    stale = serializers.BooleanField(
        help_text="Not seen for ten minutes: nothing new fits on the cluster's nodes."
    )
    changed_at = serializers.DateTimeField(allow_null=True, help_text="The last change written.")
    failing_since = serializers.DateTimeField(allow_null=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    next_try_at = serializers.DateTimeField(allow_null=True)
    failures = serializers.IntegerField(help_text="In a row.")
    error = serializers.CharField(help_text="The last failure in words; empty where nothing fails.")
    error_in = serializers.CharField(help_text="What failed.")
    requested_at = serializers.DateTimeField(
        allow_null=True, help_text="When a fresh list was last asked for."
    )
    relists = serializers.IntegerField(help_text="Fresh lists so far.")
    events = serializers.IntegerField(help_text="Changes that the watches told so far.")
    nodes = serializers.IntegerField()
    pods = serializers.IntegerField()


class ClusterStateSerializer(serializers.Serializer[Any]):
    """Where the sync stands, and what was imported last."""

    sync = SyncSerializer()
    last_import = ClusterImportSerializer(allow_null=True)
