"""All workloads of the lab. To add one: write its package and add it here."""

from typing import Any

from oxlite.bench.registry import Registry
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.busy.workload import BusyWorkload
from oxlite.bench.workloads.driver.workload import DriverWorkload
from oxlite.bench.workloads.gate.workload import GateWorkload
from oxlite.bench.workloads.gil.workload import GilWorkload
from oxlite.bench.workloads.inserts.workload import InsertsWorkload
from oxlite.bench.workloads.kv.workload import KvWorkload
from oxlite.bench.workloads.orm.workload import OrmWorkload
from oxlite.bench.workloads.shared.workload import SharedWorkload
from oxlite.bench.workloads.tasks.workload import TasksWorkload
from oxlite.bench.workloads.web.workload import WebWorkload

WORKLOADS: Registry[Workload[Any]] = Registry("workload")
WORKLOADS.add(OrmWorkload())
WORKLOADS.add(KvWorkload())
WORKLOADS.add(InsertsWorkload())
WORKLOADS.add(DriverWorkload())
WORKLOADS.add(GilWorkload())
WORKLOADS.add(GateWorkload())
WORKLOADS.add(SharedWorkload())
WORKLOADS.add(BusyWorkload())
WORKLOADS.add(TasksWorkload())
WORKLOADS.add(WebWorkload())
