"""Drivers: the Python libraries through which a workload talks to SQLite, and to PostgreSQL.

``base`` says what a driver must offer, ``catalogue`` registers them all,
``connections`` opens a connection as a scenario says, ``pragmas`` applies its settings and reads
them back, ``handlers`` has busy handlers of the lab, and each other module is one driver. A
driver's library is imported only when a connection is opened or its presence asked for.
"""
