"""Tests of sessions and of the changesets they record."""
