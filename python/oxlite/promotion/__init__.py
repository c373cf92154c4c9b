"""From a SQLite file to PostgreSQL, ``oxlite promote``; and back, ``oxlite sample``.

::

    errors       what can go wrong
    names        names and texts in SQL
    source       what a file has
    values       how a value gets from the one side to the other; functions: what SQL lacks for it
    arrays       lists of JSON as arrays
    choice       which type a column gets
    survey       what is stored in columns
    overrides    what a user wants otherwise
    plan         what becomes of each table and column
    row_sql      a row as one text, in SQL
    rows         rows as lines of COPY, and as texts that are compared
    target       how PostgreSQL is reached
    expressions  expressions with the names that columns have there
    definition   tables, keys and constraints there
    noted        how far all of it has come, there
    transfer     all rows, part by part
    changes      what is written meanwhile
    comparison   whether both sides have the same
    promotion    all of it, in order

The way back::

    origin       what PostgreSQL has
    forms        what a value of PostgreSQL's is in SQLite
    gathered     which rows are taken, and all that they refer to
    tables       the tables of the file
    sample       all of it, in order

Nothing here needs psycopg before PostgreSQL is reached.
"""

from oxlite.promotion.errors import DoesNotFit, PromotionError, VerificationDiffers
from oxlite.promotion.overrides import MISFITS, Misfits, Overrides, read_overrides
from oxlite.promotion.plan import Note, Plan
from oxlite.promotion.promotion import Promoted, Settings, abort, examine, promote
from oxlite.promotion.sample import ROWS, Sampled, sample

__all__ = [
    "MISFITS",
    "ROWS",
    "DoesNotFit",
    "Misfits",
    "Note",
    "Overrides",
    "Plan",
    "Promoted",
    "PromotionError",
    "Sampled",
    "Settings",
    "VerificationDiffers",
    "abort",
    "examine",
    "promote",
    "read_overrides",
    "sample",
]
