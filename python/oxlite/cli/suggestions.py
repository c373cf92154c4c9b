"""A group of commands that knows what was meant by a name that is none of them."""

from typing import Any

from typer.core import TyperGroup

__all__ = ["SuggestingGroup"]


class SuggestingGroup(TyperGroup):
    """Refuses an unknown command as the lab refuses any unknown name."""

    # Typer has Click's types as its own in some releases, so they have no name here.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """The command that the arguments begin with.

        Raises:
            click.UsageError: There is none of that name; the nearest one is suggested.
        """
        from oxlite.bench.errors import unknown

        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(str(unknown("command", args[0], self.list_commands(ctx))))
        return super().resolve_command(ctx, args)
