"""All workloads of the lab, in the order of a report. To add one: a line in ``PACKAGES``."""

from importlib import import_module
from typing import Any

from oxlite.bench.registry import Registry
from oxlite.bench.workloads.base import Workload

PACKAGES = (
    "orm",
    "kv",
    "inserts",
    "driver",
    "gil",
    "gate",
    "shared",
    "busy",
    "async_",
    "cache",
    "notify",
    "cable",
    "tasks",
    "backup",
    "top",
    "web",
)

WORKLOADS: Registry[Workload[Any]] = Registry("workload")
for _package in PACKAGES:
    WORKLOADS.add(import_module(f"oxlite.bench.workloads.{_package}.workload").WORKLOAD)
