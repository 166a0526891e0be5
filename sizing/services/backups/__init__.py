"""The whole state of the desk as one file, which fits SQLite and PostgreSQL alike.

The file is gzip of JSON lines: what it is and of which migrations, then for each table its columns and its
rows, then how many rows there were. Not in it: sessions, signs of life, the change log (the restored rows
write a new one) and everything in `DATA_DIR`, above all the secret key.
"""

from sizing.services.backups.restoring import restore
from sizing.services.backups.writing import write, write_to

__all__ = ["restore", "write", "write_to"]
