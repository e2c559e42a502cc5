"""OpenCode's OpenAPI document as a judge: what an endpoint may answer, and what an event may be."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]


class Schema:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._components = document["components"]
        self._events = {
            kind: reference
            for reference in self._components["schemas"]["Event"]["anyOf"]
            for kind in self._kinds(reference)
        }

    def operations(self) -> dict[str, dict[str, Any]]:
        paths = self._document["paths"]
        return {f"{method.upper()} {path}": paths[path][method] for path in paths for method in paths[path]}

    def problems(self, name: str, status: int, value: Any) -> list[str]:
        """What is wrong with the answer of an endpoint; `None` stands for an empty body.

        Of requests that are wrong, OpenCode's first API answers in one shape, whatever its document says."""
        if status == 400 and " /api/" not in name:
            return self._check({"$ref": "#/components/schemas/BadRequestError"}, value, name)
        answers = self.operations()[name]["responses"]
        if str(status) not in answers:
            return [f"{name} answers with {status}, which is not among {sorted(answers)}"]
        content = answers[str(status)].get("content")
        if not content:
            return [] if value is None else [f"{name} answers {status} with a body"]
        return self._check(next(iter(content.values()))["schema"], value, name)

    def event_problems(self, event: dict[str, Any]) -> list[str]:
        reference = self._events.get(event.get("type", ""))
        return [f"no such event: {event}"] if reference is None else self._check(reference, event, event["type"])

    def has_event(self, kind: str) -> bool:
        return kind in self._events

    def has_answer(self, name: str, status: int) -> bool:
        return str(status) in self.operations()[name]["responses"]

    def _check(self, schema: dict[str, Any], value: Any, what: str) -> list[str]:
        validator = Draft202012Validator({**schema, "components": self._components})
        return [f"{what}: {error.message[:300]} at {list(error.path)}" for error in validator.iter_errors(value)]

    def _kinds(self, reference: dict[str, Any]) -> list[str]:
        name = reference["$ref"].rsplit("/", 1)[1]
        kinds: list[str] = self._components["schemas"][name]["properties"]["type"]["enum"]
        return kinds
