"""Drivers: the Python libraries through which a workload talks to SQLite, and to PostgreSQL.

``base`` says what a driver must offer, ``catalogue`` registers them all, and
each other module is one driver. A driver's library is imported only when a
connection is opened or its presence asked for.
"""
