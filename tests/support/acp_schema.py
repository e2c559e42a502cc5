"""The official JSON schemas of ACP, out of the npm package that the TypeScript SDK depends on.

They are the unstable ones, which have all that the stable ones have. `instances` makes values that fit them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import strategies as st

Schema = dict[str, Any]
_FOLDER = Path(__file__).parents[2] / "sdks/typescript/node_modules/@agentclientprotocol/sdk/schema"
needs_schema = pytest.mark.skipif(not _FOLDER.is_dir(), reason="`make packages` has not been run")

_words = st.sampled_from(["", "a", "one", "two\nlines\n", "/tmp/x", "main", "mode", "_own", "é€😀"])
_numbers = st.integers(0, 9)
_anything = st.one_of(st.none(), st.booleans(), _numbers, _words, st.lists(_words, max_size=2))
_small = st.dictionaries(_words, _words, max_size=1)
_meta = st.dictionaries(st.sampled_from(["a", "sandboxagent.dev"]), _small, max_size=2)
_unknown = st.dictionaries(st.sampled_from(["unknownField", "another"]), _anything, max_size=1)


@functools.cache
def _schema(version: int) -> Schema:
    document: Schema = json.loads((_FOLDER / f"v{version}" / "schema.unstable.json").read_text())
    return document


@functools.cache
def validator(version: int, name: str) -> Any:
    """A validator of one definition, such as `SessionUpdate`."""
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": _schema(version)["$defs"]})


def check(version: int, name: str, value: Any) -> None:
    """Fail with the value if it does not fit the definition."""
    errors = [error.message[:500] for error in validator(version, name).iter_errors(value)]
    assert not errors, f"not a v{version} {name}: {errors}\n{json.dumps(value, indent=1)}"


@functools.cache
def instances(version: int, name: str) -> st.SearchStrategy[Any]:
    """Values that fit a definition; often with members that it does not name."""
    return _made(_schema(version)["$defs"][name], version).filter(validator(version, name).is_valid)


def _made(schema: Any, version: int) -> st.SearchStrategy[Any]:
    if schema is True or not schema:
        return _anything
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return st.deferred(lambda: _of(version, name))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    parts = [_made(part, version) for part in schema.get("allOf", [])]
    choices = [schema[name] for name in ("anyOf", "oneOf") if name in schema]
    parts += [st.one_of([_made(part, version) for part in choice]) for choice in choices]
    if "properties" in schema:
        parts.append(_members(schema, version))
    if parts:
        return parts[0] if len(parts) == 1 else st.tuples(*parts).map(_merged)
    return _plain(schema, version)


@functools.cache
def _of(version: int, name: str) -> st.SearchStrategy[Any]:
    return _made(_schema(version)["$defs"][name], version)


def _merged(parts: tuple[Any, ...]) -> Any:
    if not all(isinstance(part, dict) for part in parts):
        return next((part for part in parts if not isinstance(part, dict)), None)
    return {name: member for part in parts for name, member in part.items()}


def _members(schema: Schema, version: int) -> st.SearchStrategy[Any]:
    required = set(schema.get("required", []))
    members = {name: _meta if name == "_meta" else _made(of, version) for name, of in schema["properties"].items()}
    named = st.fixed_dictionaries(
        {name: made for name, made in members.items() if name in required},
        optional={name: made for name, made in members.items() if name not in required},
    )
    return st.tuples(_unknown, named).map(_merged)


def _plain(schema: Schema, version: int) -> st.SearchStrategy[Any]:
    kinds = schema.get("type", [])
    made = [_of_type(kind, schema, version) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return st.one_of(made) if made else _anything


def _of_type(kind: str, schema: Schema, version: int) -> st.SearchStrategy[Any]:
    match kind:
        case "array":
            return st.lists(_made(schema.get("items", True), version), min_size=schema.get("minItems", 0), max_size=3)
        case "object":
            inner = schema.get("additionalProperties", True)
            return st.dictionaries(_words, _made(inner, version), max_size=2)
        case "integer" | "number":
            return _numbers
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return _words
