"""Adapters and converters that are registered with another driver's module, registered here.

The registries of the standard library's ``sqlite3`` are its own: what an application or one of its
libraries registers there does not reach this driver's connections.

Invariant: the other module is given; nothing here imports it.
"""

from types import ModuleType

from oxlite import _native

__all__ = ["register_all_from"]


def register_all_from(module: ModuleType) -> None:
    """Register here every adapter and converter that is registered with another driver's module.

    >>> import sqlite3
    >>> import oxlite
    >>> oxlite.sqlite3.register_all_from(sqlite3)

    It is as if each were registered here now, once more: for the type or name of one that is
    registered here already, the other module's counts from now on. What is registered there later
    is not known here. The other module's own defaults, for dates and times, are left out: this one
    has the same.

    Args:
        module: The standard library's ``sqlite3``, or another with ``adapters``, ``converters`` and
            ``PrepareProtocol`` as that has them.

    Raises:
        TypeError: It is no such module. Nothing has been registered.
    """
    try:
        adapters = dict(module.adapters)
        converters = dict(module.converters)
        protocol = module.PrepareProtocol
        package = module.__name__.partition(".")[0]
    except (AttributeError, TypeError):
        raise TypeError(
            "a module with adapters, converters and PrepareProtocol is wanted, as the standard"
            f" library's sqlite3 is one, not {module!r}"
        ) from None

    def is_default(function: object) -> bool:
        return str(getattr(function, "__module__", "")).partition(".")[0] == package

    for (kind, wanted), adapter in adapters.items():
        if is_default(adapter):
            continue
        if wanted is protocol:
            _native.register_adapter(kind, adapter)
        else:
            _native.adapters[kind, wanted] = adapter
    for name, converter in converters.items():
        if not is_default(converter):
            _native.register_converter(name, converter)
