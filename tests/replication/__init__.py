"""``oxlite.replication``: real Litestream, real stores, processes that are really killed."""
