"""Tests of `oxlite.aio`."""
