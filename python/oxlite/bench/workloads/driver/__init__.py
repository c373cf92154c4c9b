"""``driver``: what one statement costs in one thread of one process, per driver.

``worker`` measures, ``workload`` takes turns among the drivers and says what a
report shows.
"""
