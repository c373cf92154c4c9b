"""Form fields for arrays, under the names of ``django.contrib.postgres.forms``.

- ``SimpleArrayField``: one text, with a delimiter. It is what ``ArrayField`` has in a form.
- ``SplitArrayField``: an input for each element.

Django's own cannot be imported where there is no driver for PostgreSQL.

Invariant: a message about an element says which one it is, counted from 1.

Source: https://docs.djangoproject.com/en/5.2/ref/contrib/postgres/forms/#fields
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

from django import forms
from django.contrib.postgres.utils import prefix_validation_error
from django.contrib.postgres.validators import ArrayMaxLengthValidator, ArrayMinLengthValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

__all__ = ["SimpleArrayField", "SplitArrayField", "SplitArrayWidget"]

_MESSAGES: Final = {"item_invalid": _("Item %(nth)s in the array did not validate:")}


class _Items(forms.Field):
    """What the fields for arrays have in common."""

    default_error_messages: Final = _MESSAGES
    base_field: Any

    def _each(
        self, items: Iterable[Any], step: Callable[[Any], Any]
    ) -> tuple[list[Any], list[ValidationError | None]]:
        """Do something with each item: what came of it, or the item itself and an error."""
        done: list[Any] = []
        errors: list[ValidationError | None] = []
        for number, item in enumerate(items, 1):
            try:
                done.append(step(item))
                errors.append(None)
            except ValidationError as error:
                done.append(item)
                errors.append(
                    prefix_validation_error(
                        error,
                        prefix=self.error_messages["item_invalid"],
                        code="item_invalid",
                        params={"nth": number},
                    )
                )
        return done, errors

    def _all(self, items: Iterable[Any], step: Callable[[Any], Any]) -> list[Any]:
        done, errors = self._each(items, step)
        _raise(errors)
        return done


def _raise(errors: Iterable[ValidationError | None]) -> None:
    found = list(chain.from_iterable(error.error_list for error in errors if error is not None))
    if found:
        raise ValidationError(found)


class SimpleArrayField(_Items, forms.CharField):
    """A list as one text.

    Args:
        base_field: The form field that each item is for.
        delimiter: What stands between two items. No item can contain it.
        max_length: How many items there may be.
        min_length: How many items there must be.
        kwargs: As for any form field.
    """

    def __init__(
        self,
        base_field: forms.Field,
        *,
        delimiter: str = ",",
        max_length: int | None = None,
        min_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.base_field = base_field
        self.delimiter = delimiter
        super().__init__(**kwargs)  # without the lengths, which CharField has of characters
        self.min_length, self.max_length = min_length, max_length
        if min_length is not None:
            self.validators.append(ArrayMinLengthValidator(int(min_length)))
        if max_length is not None:
            self.validators.append(ArrayMaxLengthValidator(int(max_length)))

    def prepare_value(self, value: Any) -> Any:
        """The text of a list."""
        if not isinstance(value, list):
            return value
        items = (self.base_field.prepare_value(item) for item in value)
        return self.delimiter.join("" if item is None else str(item) for item in items)

    def to_python(self, value: Any) -> list[Any]:
        """The list of a text.

        Raises:
            django.core.exceptions.ValidationError: The base field does not take an item.
        """
        if not isinstance(value, list):
            value = value.split(self.delimiter) if value else []
        return self._all(value, self.base_field.to_python)

    def validate(self, value: Any) -> None:
        """Look at the list, and at each item."""
        super().validate(value)
        self._all(value, self.base_field.validate)

    def run_validators(self, value: Any) -> None:
        """Run the validators of the list, and of each item."""
        super().run_validators(value)
        self._all(value, self.base_field.run_validators)

    def clean(self, value: Any) -> list[Any]:
        """The list of what the base field makes of each item."""
        return self._all(super().clean(value), self.base_field.clean)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the text is of another list."""
        try:
            items = self.to_python(data)
        except ValidationError:
            return True
        if not items and initial in self.empty_values:
            return False
        return bool(super().has_changed(initial, data))


class SplitArrayWidget(forms.MultiWidget):
    """One input beside the other.

    Args:
        widget: That of an item; a widget or its class.
        size: How many there are.
        kwargs: As for any widget.
    """

    use_fieldset = False

    def __init__(self, widget: Any, size: int, **kwargs: Any) -> None:
        self.size = size
        super().__init__([widget] * size, **kwargs)

    def decompress(self, value: Sequence[Any] | None) -> list[Any]:
        """The values of the inputs."""
        return list(value or ())

    def get_context(self, name: str, value: Any, attrs: Any = None) -> Any:
        """What its template is given."""
        return super().get_context(name, value, attrs)

    def id_for_label(self, id_: str) -> str:
        """A label is for the first one."""
        return f"{id_}_0" if id_ else id_


class SplitArrayField(_Items):
    """A list with an input for each item.

    Args:
        base_field: The form field that each item is for.
        size: How many inputs there are.
        remove_trailing_nulls: Inputs at the end that are empty are no items.
        kwargs: As for any form field.
    """

    def __init__(
        self,
        base_field: forms.Field,
        size: int,
        *,
        remove_trailing_nulls: bool = False,
        **kwargs: Any,
    ) -> None:
        self.base_field = base_field
        self.size = size
        self.remove_trailing_nulls = remove_trailing_nulls
        kwargs.setdefault("widget", SplitArrayWidget(widget=base_field.widget, size=size))
        super().__init__(**kwargs)

    def _length(self, items: Sequence[Any]) -> int:
        """How many items count."""
        length = len(items)
        while (
            self.remove_trailing_nulls
            and length
            and items[length - 1] in self.base_field.empty_values
        ):
            length -= 1
        return length

    def to_python(self, value: Any) -> list[Any]:
        """The list of what the inputs have."""
        return [self.base_field.to_python(item) for item in super().to_python(value) or ()]

    def clean(self, value: Any) -> list[Any]:
        """The list of what the base field makes of each item.

        Raises:
            django.core.exceptions.ValidationError: It does not take one, or all are empty that are
                required.
        """
        if self.required and not any(value or ()):
            raise ValidationError(self.error_messages["required"], code="required")
        done, errors = self._each(value or (), self.base_field.clean)
        length = self._length(done)
        _raise(errors[:length])
        return done[:length]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the inputs have another list."""
        try:
            items = self.to_python(data)
        except ValidationError:
            return True
        items = items[: self._length(items)]
        if not items and initial in self.empty_values:
            return False
        return bool(super().has_changed(initial, items))
