"""Nodes drawn as rows of GPU cells: SVG by the server, told apart by more than color, with words for all."""

from sizing.admin.picture.cells import Cell, Kind, Part, Row
from sizing.admin.picture.drawing import draw, legend, model_key
from sizing.admin.picture.of_nodes import hues, row_of

__all__ = ["Cell", "Kind", "Part", "Row", "draw", "hues", "legend", "model_key", "row_of"]
