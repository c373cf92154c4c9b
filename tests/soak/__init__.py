"""Soaks: what must stay within bounds however long it goes on."""
