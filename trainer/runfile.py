"""A configuration file as a user wrote it: values with the lines they stand on, and errors that point there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from trainer.errors import ConfigError

MAX_BYTES = 1 << 20  # a run file is a page of text; more is a mistake (a data file, an image)


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads `1e-8` as text, which nobody who writes `eps: 1e-8` means; JSON and YAML 1.2 read a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True)
class Document:
    """Parsed values, and for every dotted path the place (`run.yml:12`) where a person finds it."""

    source: str
    values: dict[str, Any]
    lines: Mapping[str, int | str]

    def place(self, path: str) -> str:
        """`run.yml:12`, or `command line` for an override; the nearest parent where the path itself is not written."""
        parts = path.split(".")
        upwards = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        below = [name for name in self.lines if name.startswith(f"{path}.")]  # of a section that is not there
        for name in (*upwards, *below):
            line = self.lines.get(name)
            if line is not None:
                return line if isinstance(line, str) else f"{self.source}:{line}"
        return self.source

    def with_override(self, field: str, value: object) -> Document:
        """The same document with one dotted field replaced."""
        values = _replaced(self.values, field.split("."), value)
        return Document(self.source, values, {**self.lines, field: "command line"})


def parse_file(path: Path) -> Document:
    """Read YAML (or JSON, which is YAML). Raises ConfigError naming line and column."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", "Give the path of a run file, such as examples/digits.yml") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "Give a run file that you may read") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: {len(raw)} bytes, a run file has at most {MAX_BYTES}", "Is this the right file?")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8 text", "Save the file as UTF-8") from None
    return parse_text(text, path.name)


def parse_text(text: str, source: str) -> Document:
    """As `parse_file`, from text; `source` is how messages name it."""
    try:
        root = yaml.compose(text, Loader=_Loader)
        lines: dict[str, int | str] = {}
        if root is not None:
            _walk(root, "", lines, source)
        values = yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        problem = f"{where}  not valid YAML: {error.problem}"
        raise ConfigError(problem, "Mind the indentation, colons and quotes") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}  not valid YAML: {str(error).splitlines()[0]}") from None
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{source}  holds a {type(values).__name__}, expected fields such as `accumulation:`")
    return Document(source, values, lines)


def parse_override(text: str) -> tuple[str, object]:
    """`accumulation.accum_steps=8` -> (`accumulation.accum_steps`, 8)."""
    field, equals, value = text.partition("=")
    if not equals or not field.strip():
        raise ConfigError(f"command line  `{text}` is not FIELD=VALUE", "For example accumulation.accum_steps=8")
    try:
        return field.strip(), yaml.load(value, Loader=_Loader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"command line  `{text}`: the value is not valid YAML") from None


def explain(error: ValidationError, document: Document, root: type[BaseModel]) -> tuple[str, str]:
    """The first problem that pydantic found, as (what, cure) for a person."""
    first = min(error.errors(), key=lambda e: (e["type"] != "extra_forbidden", len(e["loc"])))
    path = _path(first["loc"], document.values)
    place = document.place(path) if path else document.source
    if first["type"] == "extra_forbidden":
        known = _known_fields(root, path)
        near = difflib.get_close_matches(path.rsplit(".", 1)[-1], known, n=1, cutoff=0.5)
        hint = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}"
        return f"{place}  {path} is not a known field", hint
    if first["type"] == "value_error":
        section = f"{path}: " if path else ""
        return f"{place}  {section}{first['ctx']['error']}", ""
    seen = repr(first["input"])
    seen = seen if len(seen) <= 60 else seen[:57] + "..."
    return f"{place}  {path} = {seen}: {first['msg'][0].lower()}{first['msg'][1:]}", _allowed(root, path)


def _walk(node: yaml.Node, path: str, lines: dict[str, int | str], source: str) -> None:
    """Note the line of every key; refuse a key that stands twice, which YAML would silently take the last of."""
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen:
            problem = f"{source}:{line}  {path}{name} stands twice, first in line {seen[name]}"
            raise ConfigError(problem, "Keep one of them")
        seen[name] = line
        lines[f"{path}{name}"] = line
        _walk(value, f"{path}{name}.", lines, source)


def _replaced(values: object, parts: list[str], value: object) -> dict[str, Any]:
    table = dict(values) if isinstance(values, dict) else {}
    table[parts[0]] = _replaced(table.get(parts[0]), parts[1:], value) if len(parts) > 1 else value
    return table


def _path(loc: tuple[int | str, ...], values: object) -> str:
    """pydantic's location without the names of union branches that it adds at the end."""
    parts: list[str] = []
    for item in loc:
        inside = item in values if isinstance(values, dict) else isinstance(values, list) and item in range(len(values))
        if not inside:
            break
        values = values[item]  # type: ignore[index]
        parts.append(str(item))
    return ".".join(parts)


def _section(root: type[BaseModel], path: str) -> type[BaseModel] | None:
    """The settings class that holds the last part of `path`."""
    section: type[BaseModel] = root
    for part in path.split(".")[:-1]:
        field = section.model_fields.get(part)
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return None
        section = field.annotation
    return section


def _known_fields(root: type[BaseModel], path: str) -> list[str]:
    section = _section(root, path)
    return sorted(section.model_fields) if section else []


def _allowed(root: type[BaseModel], path: str) -> str:
    section = _section(root, path)
    field = section.model_fields.get(path.rsplit(".", 1)[-1]) if section else None
    return f"It is: {field.description}" if field is not None and field.description else ""
