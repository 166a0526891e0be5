"""The Kubernetes cluster: lists that people bring, its live sync, and the rules that name its pods."""

from sizing.admin.cluster.imports import ClusterImportAdmin
from sizing.admin.cluster.rules import MappingRuleAdmin
from sizing.admin.cluster.sync import ClusterSyncAdmin
from sizing.models import ClusterImport, ClusterSync, MappingRule

ADMINS = (
    (ClusterImport, ClusterImportAdmin),
    (ClusterSync, ClusterSyncAdmin),
    (MappingRule, MappingRuleAdmin),
)
