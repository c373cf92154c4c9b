"""Channels, groups and rooms of ``oxlite.cable``."""
