"""What happened while a form or a confirmation was open: told, and nothing is saved or deleted unseen.

A form carries short digests of what it showed (`marks.py`). When it comes back, they are compared under the
lock of all writers with what it would show now; where they differ, nothing is saved, and the page says who
changed what and shows what is stored now beside what was typed (`conflict.py`). It then carries the digests
of now, so that saving it again is saving over that knowingly. A form for something new carries an id instead,
which the history keeps, so that it is added once. A confirmation of a deletion carries a digest of all that
goes (`deleting.py`).

What carries nothing, as a request made by a script, is taken as it is.
"""

from sizing.admin.meanwhile.deleting import DeletingAdmin
from sizing.admin.meanwhile.saving import SavingAdmin

__all__ = ["DeletingAdmin", "SavingAdmin"]
