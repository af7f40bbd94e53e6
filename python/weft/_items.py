# SPDX-License-Identifier: Apache-2.0
"""Layers, optimizers, losses, metrics and callbacks as a job file has them: a kind with options.

What options there are, and what they may be, libweft knows (docs/jobs.md); here are the names that
Keras gives the kinds, and the options that may be given without a name.
"""
from __future__ import annotations

import difflib
import re
from typing import Any

from . import errors


class Item:
    """A kind with its options: `Item("dense", {"units": 10})` is `dense: {units: 10}`."""

    def __init__(self, kind: str, options: dict[str, Any] | None = None):
        self.kind, self.options = kind, dict(options or {})

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


def spec(value: Any, what: str) -> Any:
    """What a job file has for a value: names, numbers, items, and lists and maps of them."""
    if isinstance(value, Item):
        options = {k: spec(v, what) for k, v in value.options.items() if v is not None}
        return {value.kind: options} if options else value.kind
    if isinstance(value, dict):
        return {str(k): spec(v, what) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [spec(v, what) for v in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a number of numpy's
        return value.item()
    raise _refused(value, what)


def _refused(value: Any, what: str) -> errors.Error:
    """An object that a job file cannot have, with what to give instead."""
    if isinstance(value, Kind):
        return errors.WrongType(f"{what}: {value.__name__} is a class",
                                f"call it: {value.__name__}()")
    kind = value if isinstance(value, type) else type(value)
    home = kind.__module__.partition(".")[0]
    named = getattr(value, "__name__", "")
    if callable(value) and not isinstance(value, type) and named:
        return errors.WrongType(
            f"{what}: weft takes no Python functions",
            f'give its name: "{named}"' if named.isidentifier() else 'give a name, as "relu"')
    from . import callbacks, layers, losses, metrics, optimizers
    for module in (layers, optimizers, losses, metrics, callbacks):
        if kind.__name__ in module._FAMILY.kinds:
            return errors.WrongType(f"{what}: {kind.__module__}.{kind.__name__} is none of weft's",
                                    f"give {module.__name__}.{kind.__name__}(...)")
    hint = "give a name, or one of weft.layers, weft.optimizers, weft.losses, weft.metrics, " \
           "weft.callbacks"
    if home == "keras" and any(word in kind.__module__ for word in ("initializers", "regularizers")):
        name = _lower(kind.__name__)
        hint = f'give its name: "{name}", or with options: {{"{name}": {{...}}}}'
    return errors.WrongType(f"{what}: {value!r} of {kind.__module__}.{kind.__name__} is none of "
                            "weft's", hint)


def _lower(name: str) -> str:
    """As a job file writes a name of Keras's.

    >>> _lower("HeNormal"), _lower("L1L2")
    ('he_normal', 'l1_l2')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Kind:
    """Makes items of a kind: called as Keras's class of that name is."""

    def __init__(self, name: str, kind: str, positional: tuple[str, ...]):
        self.__name__, self.kind, self.positional = name, kind, positional
        self.__doc__ = (f"`{kind}` of the job file (docs/jobs.md)"
                        + (f"; without names: {', '.join(positional)}." if positional else "."))

    def __call__(self, *values: Any, **options: Any) -> Item:
        if len(values) > len(self.positional):
            raise errors.WrongType(f"{self.__name__} takes {len(self.positional)} values without a "
                                   f"name, not {len(values)}", "name the options")
        given = dict(zip(self.positional, values))
        for name in given:
            if name in options:
                raise errors.WrongType(f"{self.__name__} is given {name} twice")
        return Item(self.kind, {**given, **options})

    def __repr__(self) -> str:
        return f"<{self.__name__}: {self.kind}>"


class Family:
    """The kinds of a module, for its __getattr__. `table`: "Name: kind positional ..." lines."""

    def __init__(self, what: str, table: str):
        self.what, self.kinds = what, {}
        for line in table.strip().splitlines():
            name, _, rest = line.partition(":")
            kind, *positional = rest.split()
            self.kinds[name.strip()] = Kind(name.strip(), kind, tuple(positional))

    def find(self, name: str) -> Kind:
        """The kind of that name. Raises AttributeError with the nearest."""
        if name in self.kinds:
            return self.kinds[name]
        near = difflib.get_close_matches(name, self.kinds, 1, 0.5)
        raise AttributeError(f"there is no {self.what} {name!r}; " + (
            f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(self.kinds))}"))
