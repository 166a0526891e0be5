"""Inventory files: brought with a preview and then loaded, and the inventory as one to be downloaded."""

from sizing.admin.inventory.loads import InventoryLoadAdmin
from sizing.models import InventoryLoad

ADMINS = ((InventoryLoad, InventoryLoadAdmin),)
