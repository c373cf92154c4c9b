"""What ``oxlite.Database`` and ``oxlite.aio.Database`` promise alike."""
