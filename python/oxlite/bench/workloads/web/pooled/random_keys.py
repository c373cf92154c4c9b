"""Keys at random, without sorting all of them."""

import random

from sqlalchemy import select
from sqlalchemy.orm import Session

from oxlite.bench.workloads.web.pooled.models import Base


def pick_key(session: Session, model: type[Base], *, to_write: bool = False) -> int:
    """The key of any row; 0 if there is none.

    Args:
        session: whose transaction looks for it.
        model: of which table.
        to_write: whether the transaction writes later. Then it begins here, as Django's do, and
            nobody destroys the row between the looking and the writing.
    """
    latest_first = select(model.id).order_by(model.id.desc()).limit(1)
    latest = session.scalar(latest_first.with_for_update() if to_write else latest_first)
    if latest is None:
        return 0
    at_random = select(model.id).where(model.id >= random.randint(1, latest))
    return session.scalar(at_random.order_by(model.id).limit(1)) or 0
