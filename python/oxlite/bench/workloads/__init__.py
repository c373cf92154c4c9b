"""The workloads: ``base`` says what one is, ``catalogue`` registers them all.

Each other package here is one workload. Its worker part is imported by worker
processes and must stay light.
"""
