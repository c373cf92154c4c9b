"""The program of a writer: ``python -m tests.replica_soak.load DB SECONDS RATE``.

Single rows; at so many a second, by a timetable, or without a pause if that is 0. It prints what
came of it as JSON.
"""

import json
import logging
import sys
import time

from oxlite import Database


def _main() -> None:
    path, seconds, rate = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    told: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    logging.getLogger("oxlite").addHandler(Keep())
    errors: list[str] = []
    writes, longest = 0, 0.0
    with Database(path, timeout=30) as db:
        began = now = time.monotonic()
        while now < began + seconds:
            try:
                db.execute(
                    "INSERT INTO entry (id, filling) VALUES (?, randomblob(100))"
                    " ON CONFLICT DO UPDATE SET n = n + 1, filling = excluded.filling",
                    (writes % 997,),
                )
            except Exception as error:
                errors.append(str(error))
            writes += 1
            then = time.monotonic()
            longest = max(longest, then - now)
            now = then
            if rate and (ahead := began + writes / rate - now) > 0:
                time.sleep(ahead)
                now = time.monotonic()
        found = db.stats()
    print(
        json.dumps(
            {
                "writes": writes - len(errors),
                "seconds": now - began,
                "longest": longest,
                "checkpoints": found.checkpoints,
                "incomplete": found.checkpoints_incomplete,
                "checkpoint_errors": found.checkpoint_errors,
                "errors": errors[:10],
                "named": len(told),
            }
        )
    )


if __name__ == "__main__":
    _main()
