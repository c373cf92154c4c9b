"""What SQLite and the dialect can do, in the words of SQLAlchemy's tests of any dialect.

The machinery has a property for everything a test may need. Those of ``SUPPORTED`` are on and those
of ``UNSUPPORTED`` off, whatever SQLAlchemy's own default; the others are as SQLAlchemy has them. A
test that is skipped is skipped for a reason that stands here.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

from typing import Final

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

SUPPORTED: Final = """
    aggregate_order_by array_type autocommit boolean_col_expressions check_constraint_reflection
    computed_columns computed_columns_reflect_persisted computed_columns_stored
    computed_columns_virtual create_table_as create_temp_table_as ctes ctes_with_values
    date_historic datetime_historic datetime_literals dbapi_lastrowid deferrable_fks except_
    expression_server_defaults fetch_expression fetch_offset_with_options
    fk_constraint_option_reflection_ondelete_noaction
    fk_constraint_option_reflection_ondelete_restrict
    fk_constraint_option_reflection_onupdate_restrict
    float_or_double_precision_behaves_generically foreign_key_constraint_name_reflection
    foreign_key_constraint_option_reflection_ondelete
    foreign_key_constraint_option_reflection_onupdate foreign_keys index_ddl_if_exists
    indexes_check_column_order indexes_with_expressions infinity_floats
    inline_check_constraint_reflection intersect isolation_level json_array_indexes json_type
    legacy_unconditional_json_extract mod_operator_as_percent_sign non_updating_cascade
    nullsordering nvarchar_types on_update_cascade on_update_or_deferrable_fks
    order_by_collation order_by_label_with_expression percent_schema_names
    precision_numerics_enotation_small precision_numerics_retains_significant_digits
    reflect_table_options reflects_pk_names regexp_match repeated_column_foreign_keys
    repeated_remote_col_foreign_keys sane_rowcount_w_returning savepoints server_defaults
    skip_autocommit_rollback supports_bitwise_and supports_bitwise_not supports_bitwise_or
    supports_bitwise_shift supports_bitwise_xor table_ddl_if_exists tuple_in tuple_in_w_empty
    update_from view_column_reflection view_reflection views window_functions window_range
    window_range_numeric
"""

_TYPE: Final = "SQLite has no such type"
_DIGITS: Final = "SQLite keeps numbers as 64-bit integers and floats, of 15 digits"
_SYNTAX: Final = "SQLite has no such syntax"
_TEMPORARY: Final = "SQLite's temporary tables belong to one connection, and the test uses several"
_NO_COMMENTS: Final = "SQLite has no comments on tables and columns"
_SEQUENCES: Final = "SQLite has no sequences"
_VIEWS: Final = "SQLite has no such views"

UNSUPPORTED: Final = {
    "cast_precision_numerics_many_significant_digits": _DIGITS,
    "column_collation_reflection": "SQLAlchemy does not read a column's collation from SQLite",
    "comment_reflection": _NO_COMMENTS,
    "comment_reflection_full_unicode": _NO_COMMENTS,
    "computed_columns_default_persisted": "a generated column of SQLite is VIRTUAL by default",
    "constraint_comment_reflection": _NO_COMMENTS,
    "create_or_replace_view": _SYNTAX,
    "cross_schema_fk_reflection": "a foreign key of SQLite stays within one file",
    "ctes_on_dml": _SYNTAX,
    "ctes_with_update_delete": "SQLAlchemy writes no DELETE … FROM for SQLite",
    "datetime_interval": _TYPE,
    "datetime_timezone": "SQLAlchemy keeps no time zone in SQLite's texts",
    "datetime_timezone_historic": "SQLAlchemy keeps no time zone in SQLite's texts",
    "default_schema_name_switch": "the default schema of SQLite is always main",
    "delete_from": _SYNTAX,
    "denormalized_names": "SQLite keeps names as they are written",
    "fetch_first": _SYNTAX,
    "fetch_no_order_by": _SYNTAX,
    "fetch_percent": _SYNTAX,
    "fetch_ties": _SYNTAX,
    "foreign_keys_reflect_as_index": "a foreign key of SQLite makes no index",
    "freethreading": "the interpreter has a global lock",
    "has_temp_table": _TEMPORARY,
    "identity_columns": "SQLite has no identity columns",
    "identity_columns_standard": "SQLite has no identity columns",
    "implicitly_named_constraints": "SQLite names no constraint by itself",
    "independent_connections": "the second schema is attached for one engine only",
    "index_reflects_included_columns": "SQLite has no INCLUDE in an index",
    "json_deserializer_binary": "SQLite's JSON comes as text",
    "json_index_supplementary_unicode_element": "SQLAlchemy escapes such a path, SQLite does not",
    "materialized_views": _VIEWS,
    "materialized_views_reflect_pk": _VIEWS,
    "nested_aggregates": "SQLite has no aggregates within aggregates",
    "numeric_received_as_decimal_untyped": "a number comes from SQLite as int or float",
    "parens_in_union_contained_select_w_limit_offset": _SYNTAX,
    "parens_in_union_contained_select_wo_limit_offset": _SYNTAX,
    "precision_numerics_many_significant_digits": _DIGITS,
    "reflect_indexes_with_ascdesc_as_expression": "SQLAlchemy does not read it from SQLite",
    "reflect_indexes_with_expressions": "SQLAlchemy does not read them from SQLite",
    "reflect_tables_no_columns": "a table of SQLite has columns",
    "regexp_replace": "SQLite has no such function",
    "schema_create_delete": "a schema of SQLite is attached, not created",
    "sequences": _SEQUENCES,
    "sequences_optional": _SEQUENCES,
    "supports_distinct_on": _SYNTAX,
    "table_value_constructor": "SQLAlchemy's form of VALUES names columns, SQLite's does not",
    "temp_table_comment_reflection": _NO_COMMENTS,
    "temp_table_names": _TEMPORARY,
    "temp_table_reflect_indexes": _TEMPORARY,
    "temp_table_reflection": _TEMPORARY,
    "temporary_tables": _TEMPORARY,
    "temporary_views": _TEMPORARY,
    "time_timezone": "SQLAlchemy keeps no time zone in SQLite's texts",
    "two_phase_transactions": "SQLite has no two-phase commit",
    "unicode_ddl": "its foreign key names no key, which foreign_keys=ON finds",
    "unique_constraints_reflect_as_index": "SQLAlchemy keeps SQLite's own indexes apart",
    "uuid_data_type": _TYPE,
    "window_range_non_numeric": "SQLite's RANGE takes numbers",
}

# What the interpreter, its packages or the choice of the dialect decides.
CIRCUMSTANCES: Final = {
    "async_dialect": "this run is of the other form of the dialect",
    "server_side_cursors": "the driver always reads row by row",
}

# What the tests themselves leave out, in their words.
LEFT_OUT: Final = {"sqlite or mssql": "FOR UPDATE in a text, which SQLite does not know"}


class Requirements(SuiteRequirements):
    """SQLAlchemy's, with what is known of SQLite."""

    def get_order_by_collation(self, config: object) -> str:
        """A collation that SQLite has."""
        return "NOCASE"


def _switched_on(self: Requirements) -> exclusions.compound:
    return exclusions.open()


def _switched_off(reason: str) -> property:
    def skip(self: Requirements) -> exclusions.compound:
        return exclusions.skip_if(lambda config: True, reason)

    return property(skip)


for _name in SUPPORTED.split():
    setattr(Requirements, _name, property(_switched_on))
for _name, _reason in UNSUPPORTED.items():
    setattr(Requirements, _name, _switched_off(_reason))


def _of_the_form(name: str, reason: str) -> property:
    def skip(self: Requirements) -> exclusions.compound:
        return exclusions.only_if(lambda config: config.db.dialect.is_async, reason)

    return property(skip)


for _name, _reason in CIRCUMSTANCES.items():
    setattr(Requirements, _name, _of_the_form(_name, _reason))
