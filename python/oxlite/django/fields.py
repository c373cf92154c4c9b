"""Fields that Django has for PostgreSQL alone: ``ArrayField``, kept as JSON text.

Its names, arguments, lookups, messages and what serialisers make of it are those of
``django.contrib.postgres.fields.ArrayField``: to move to PostgreSQL, the import is changed, in the
models and in their migrations. How to use it: ``docs/arrays.md``.

Invariants: what is in the column is an array, or NULL (a CHECK sees to it); elements are written as
the base field writes them for SQLite, exactly: decimals as text, never as floats.

Source: https://docs.djangoproject.com/en/5.2/ref/contrib/postgres/fields/#arrayfield
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from django.contrib.postgres.utils import prefix_validation_error
from django.contrib.postgres.validators import ArrayMaxLengthValidator
from django.core import checks
from django.core.exceptions import ValidationError
from django.db import DataError, connections, router
from django.db.models import Field, Value
from django.db.models.fields.mixins import CheckFieldDefaultMixin
from django.utils.translation import gettext_lazy as _

from oxlite import arrays
from oxlite.django.array_lookups import LOOKUPS, IndexTransform, SliceTransform
from oxlite.django.forms import SimpleArrayField

__all__ = ["ArrayField"]

_Decoder = Callable[[Any, Any], Any]
"""What is read of an element in JSON, with the expression that it is of."""


_READ: Final[Mapping[str, Callable[..., Any]]] = {
    "DecimalField": lambda value, *_: Decimal(value),  # Django's takes floats
    "BinaryField": lambda value, *_: bytes.fromhex(value),
}
"""What reads elements that are written otherwise than Django writes a column."""


class ArrayField(CheckFieldDefaultMixin, Field):
    """A list of values of another field.

    Args:
        base_field: What each element is; any field but one that refers to another model. An
            ``ArrayField`` makes it a list of lists.
        size: How many elements there are at most; the database sees to it.
        kwargs: As for any field.
    """

    empty_strings_allowed = False
    default_error_messages: Final = {
        "item_invalid": _("Item %(nth)s in the array did not validate:"),
        "nested_array_mismatch": _("Nested arrays must have the same length."),
        "invalid": _("It is no array in JSON."),
    }
    _default_hint = ("list", "[]")

    def __init__(self, base_field: Any, size: int | None = None, **kwargs: Any) -> None:
        self.base_field = base_field
        self.size = size
        self.db_collation = getattr(base_field, "db_collation", None)
        if size:
            validators = self.default_validators  # type: ignore[has-type]
            self.default_validators = [*validators, ArrayMaxLengthValidator(size)]
        super().__init__(**kwargs)

    @classmethod
    def _choices_is_value(cls, value: object) -> bool:
        return isinstance(value, list | tuple) or super()._choices_is_value(value)

    @property
    def description(self) -> str:
        """What it is, for the pages of the admin."""
        return f"Array of {self.base_field.description}"

    def contribute_to_class(self, cls: Any, name: str, **kwargs: Any) -> None:
        """Become a field of a model; the base field says of itself that it is as well."""
        super().contribute_to_class(cls, name, **kwargs)
        self.base_field.model = cls

    def set_attributes_from_name(self, name: str) -> None:
        """Take a name."""
        super().set_attributes_from_name(name)
        self.base_field.set_attributes_from_name(name)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """What a migration writes."""
        name, path, args, kwargs = super().deconstruct()
        kwargs |= {"base_field": self.base_field.clone(), "size": self.size}
        return name, path, args, kwargs

    def check(self, **kwargs: Any) -> list[Any]:
        """What is wrong with it, by the numbers of Django's own field."""
        return [
            *super().check(**kwargs),
            *self._check_base_field(),
            *self._check_databases(kwargs.get("databases") or ()),
        ]

    def _check_base_field(self) -> list[Any]:
        if self.base_field.remote_field:
            text = "Base field for array cannot be a related field."
            return [checks.Error(text, obj=self, id="postgres.E002")]
        found = self.base_field.check()
        kinds = ((checks.Error, "errors", "E001"), (checks.Warning, "warnings", "W004"))
        messages = []
        for kind, word, number in kinds:
            said = [f"{each.msg} ({each.id})" for each in found if isinstance(each, kind)]
            if said:
                text = "\n    ".join([f"Base field for array has {word}:", *said])
                messages.append(kind(text, obj=self, id=f"postgres.{number}"))
        return messages

    def _check_databases(self, databases: Iterable[str]) -> list[Any]:
        model = getattr(self, "model", None)
        return [
            checks.Error(
                f"The database {alias!r} is no SQLite.",
                hint="There, use django.contrib.postgres.fields.ArrayField.",
                obj=self,
                id="oxlite.E002",
            )
            for alias in databases
            if model is not None
            and router.allow_migrate_model(alias, model)
            and connections[alias].vendor != "sqlite"
        ]

    def db_type(self, connection: Any) -> str:
        """Text."""
        return "text"

    def db_check(self, connection: Any) -> str:
        """The CHECK of the column."""
        return arrays.constraint(connection.ops.quote_name(self.column), self.size)

    def db_parameters(self, connection: Any) -> dict[str, Any]:
        """The type, the CHECK and the collation."""
        return {**super().db_parameters(connection), "collation": self.db_collation}

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """An array as it is kept; what is no list is passed on.

        Raises:
            OverflowError: An integer has more than 64 bits.
            ValueError: A float is infinite or NaN.
            TypeError: SQLite has no type for an element.
        """
        if not isinstance(value, list | tuple):
            return value
        return arrays.array_text(self._plain(value, connection), connection.Database.adapt)

    def _plain(self, value: Sequence[Any], connection: Any) -> list[Any]:
        """The elements, as the base field has them in a database."""
        base = self.base_field
        if isinstance(base, ArrayField):
            return [
                base._plain(each, connection) if isinstance(each, list | tuple) else each
                for each in value
            ]
        prepare = base.get_db_prep_value
        plain = [None if each is None else prepare(each, connection, False) for each in value]
        if base.get_internal_type() == "DecimalField":
            plain = [
                arrays.decimal_text(each, base.decimal_places)
                if isinstance(each, Decimal)
                else each
                for each in plain
            ]
        return plain

    def get_db_converters(self, connection: Any) -> list[Callable[..., Any]]:
        """What makes a list of what is read."""
        converters: list[Callable[..., Any]] = super().get_db_converters(connection)
        decode = self._decoder(connection)

        def read(value: Any, expression: Any, connection: Any) -> Any:
            if value is None:
                return None
            try:
                found = json.loads(value)
            except (TypeError, ValueError):
                found = None
            if not isinstance(found, list):
                raise DataError(f"{self}: what is in the column is no array in JSON: {value!r}")
            return found if decode is None else decode(found, expression)

        return [read, *converters]

    def _decoder(self, connection: Any) -> _Decoder | None:
        """What reads the elements of a list; ``None`` where they are what JSON has."""
        each = self._element_decoder(connection)
        if each is None:
            return None

        def decode(found: list[Any], expression: Any) -> list[Any]:
            return [None if value is None else each(value, expression) for value in found]

        return decode

    def _element_decoder(self, connection: Any) -> _Decoder | None:
        base = self.base_field
        if isinstance(base, ArrayField):
            return base._decoder(connection)
        element: Any = Value(None, output_field=base)
        read = _READ.get(base.get_internal_type())
        of_database = connection.ops.get_db_converters(element) if read is None else [read]
        converters = [*of_database, *base.get_db_converters(connection)]
        if not converters:
            return None

        def decode(value: Any, expression: Any) -> Any:
            for convert in converters:
                value = convert(value, expression, connection)
            return value

        return decode

    def to_python(self, value: Any) -> Any:
        """A list of what a serialiser has written.

        Raises:
            django.core.exceptions.ValidationError: It is no array in JSON, or an element is wrong.
        """
        if not isinstance(value, str):
            return value
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return [self.base_field.to_python(each) for each in found]

    def value_to_string(self, obj: Any) -> str:
        """What a serialiser writes, as Django's own field has it."""
        name = self.base_field.attname
        written = [
            None
            if each is None
            else self.base_field.value_to_string(SimpleNamespace(**{name: each}))
            for each in self.value_from_object(obj)
        ]
        return json.dumps(written, ensure_ascii=False)

    def get_transform(self, name: str) -> Any:
        """``field__0`` is an element, ``field__0_2`` the first two; or what is registered."""
        transform = super().get_transform(name)
        if transform is not None:
            return transform
        numbers = name.split("_")
        if not all(number.isascii() and number.isdigit() for number in numbers):
            return None
        if len(numbers) == 1:
            return partial(IndexTransform, int(name) + 1, self.base_field)
        if len(numbers) == 2:
            return partial(SliceTransform, int(numbers[0]) + 1, int(numbers[1]))
        return None

    def slice_expression(self, expression: Any, start: int, length: int | None) -> Any:
        """``F("field")[1:3]``; Django counts the start from 1."""
        end = None if length is None else start + length - 1
        return SliceTransform(start, end, expression)

    def validate(self, value: Any, model_instance: Any) -> None:
        """Look at the elements as the base field does.

        Raises:
            django.core.exceptions.ValidationError: One is wrong, or arrays in it differ in length.
        """
        super().validate(value, model_instance)
        self._each(value, lambda element: self.base_field.validate(element, model_instance))
        if isinstance(self.base_field, ArrayField):
            lengths = {len(each) for each in value or () if each is not None}
            if len(lengths) > 1:
                code = "nested_array_mismatch"
                raise ValidationError(self.error_messages[code], code=code)

    def run_validators(self, value: Any) -> None:
        """Run the validators, and those of the base field for each element.

        Raises:
            django.core.exceptions.ValidationError: One of them does not accept it.
        """
        super().run_validators(value)
        self._each(value, self.base_field.run_validators)

    def _each(self, value: Iterable[Any] | None, look_at: Callable[[Any], object]) -> None:
        for number, each in enumerate(value or (), 1):
            try:
                look_at(each)
            except ValidationError as error:
                raise prefix_validation_error(
                    error,
                    prefix=self.error_messages["item_invalid"],
                    code="item_invalid",
                    params={"nth": number},
                ) from error

    def formfield(self, **kwargs: Any) -> Any:
        """A text with commas, unless it is said otherwise."""
        own = {
            "form_class": SimpleArrayField,
            "base_field": self.base_field.formfield(),
            "max_length": self.size,
        }
        return super().formfield(**{**own, **kwargs})


for _lookup in LOOKUPS:
    ArrayField.register_lookup(_lookup)
