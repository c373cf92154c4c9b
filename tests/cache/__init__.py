"""Tests of the cache."""
