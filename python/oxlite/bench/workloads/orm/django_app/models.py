"""The tables of ``orm`` as Django's models."""

from django.db import models


class Party(models.Model):  # type: ignore[misc]
    """A party."""

    theme = models.TextField()

    class Meta:
        """Where it is."""

        db_table = "parties"


def _goes_to(name: str) -> "models.ForeignKey[Party | None, Party | None]":
    """A relation that the database neither checks nor indexes, as in the published benchmark."""
    return models.ForeignKey(
        Party,
        models.DO_NOTHING,
        related_name=name,
        null=True,
        db_constraint=False,
        db_index=False,
    )


class Person(models.Model):  # type: ignore[misc]
    """A person, who goes to one party and perhaps to another."""

    party = _goes_to("people")
    other_party = _goes_to("other_people")
    name = models.TextField()
    address = models.TextField()

    class Meta:
        """Where it is."""

        db_table = "people"


class JsonParty(models.Model):  # type: ignore[misc]
    """A party that is one document."""

    stuff = models.JSONField()

    class Meta:
        """Where it is."""

        db_table = "json_parties"


MODELS = (Party, Person, JsonParty)
