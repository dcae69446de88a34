"""The rules of the house as code. A failure names file:line and the rule; CONTRIBUTING.md gives the reasons."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import lookahead

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lookahead"
FILES = sorted(PACKAGE.rglob("*.py"))
LAYERS = [
    ("options", "tree", "stats", "_jit", "trace"),
    ("index", "views"),
    ("draft", "verify"),
    ("hf",),
    ("session", "phrases", "bench"),
    ("server", "cli"),
    ("__init__",),
]
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
STRANGERS = (LAYERS[1], LAYERS[2])  # rooms side by side that do not know each other
WITHOUT_TORCH = (*LAYERS[0], *LAYERS[1], "draft")
PUBLIC = sorted(name for name in lookahead.__all__ if not name.startswith("_"))

Import = ast.Import | ast.ImportFrom
Function = ast.FunctionDef | ast.AsyncFunctionDef


# ---- Reading the sources ----


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def nodes(*kinds: type) -> list[tuple[Path, ast.AST]]:
    return [(file, node) for file in FILES for node in ast.walk(parse(file)) if isinstance(node, kinds)]


def room(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def place(file: Path, node: ast.AST | None = None) -> str:
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def module_file(*parts: str) -> Path | None:
    """Return the file of a module of the package, None where it has none of that name."""
    path = ROOT.joinpath(*parts)
    files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file in FILES]
    return files[0] if files else None


def targets(file: Path, node: Import) -> list[Path]:
    """Return the files of the package that an import statement names."""
    if isinstance(node, ast.Import):
        found = [module_file(*alias.name.split(".")) for alias in node.names]
    else:
        above = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
        base = (*above, *(node.module.split(".") if node.module else ()))
        found = [module_file(*base, alias.name) or module_file(*base) for alias in node.names]
    return [target for target in found if target]


def named(node: Import) -> set[str]:
    """Return the packages that an import statement names in full."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return set() if node.level else {node.module.split(".")[0]}


def is_kernel(function: Function) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in function.decorator_list)
    return any(getattr(item, "id", getattr(item, "attr", "")) == "kernel" for item in decorators)


def check(found: list[str], rule: str) -> None:
    if found:
        pytest.fail("\n".join([f"rule: {rule}", *sorted(found)]), pytrace=False)


IMPORTS = nodes(ast.Import, ast.ImportFrom)
FUNCTIONS = nodes(ast.FunctionDef, ast.AsyncFunctionDef)
KERNELS = [(file, function) for file, function in FUNCTIONS if is_kernel(function)]


# ---- Rooms ----


def test_imports_go_down_the_layers() -> None:
    check([place(file) for file in FILES if room(file) not in LAYER], "every room has a layer")
    found = []
    for file, node in IMPORTS:
        for here, there in {(room(file), room(target)) for target in targets(file, node)}:
            strangers = here != there and any(here in rooms and there in rooms for rooms in STRANGERS)
            if LAYER[here] < LAYER[there] or strangers:
                found.append(f"{place(file, node)}: {here} imports {there}")
    check(found, "imports go down the layers only")


def test_no_import_cycle() -> None:
    for_types = {id(node) for _, test in nodes(ast.If) if "TYPE_CHECKING" in ast.dump(test.test) for node in test.body}
    edges = defaultdict(set)
    for file, node in IMPORTS:
        if id(node) not in for_types:
            edges[file].update(set(targets(file, node)) - {file})
    leaves = {file for file in FILES if not edges[file]}
    while leaves:  # take away what imports nothing that is left, until only cycles and what leads to them remain
        edges = {file: others - leaves for file, others in edges.items() if file not in leaves}
        leaves = {file for file, others in edges.items() if not others}
    check(
        [f"{place(file)}: imports {', '.join(map(place, others))}" for file, others in edges.items()], "no import cycle"
    )


def test_torch_and_transformers_stay_in_their_rooms() -> None:
    uses = [(file, node, room(file), named(node)) for file, node in IMPORTS]
    check([place(f, n) for f, n, here, names in uses if "torch" in names and here in WITHOUT_TORCH], "no torch here")
    check(
        [place(f, n) for f, n, here, names in uses if "transformers" in names and here != "hf"],
        "hf alone knows transformers",
    )
    outside = [place(f, n) for f, n, here, names in uses if names & {"typer", "rich"} and here != "cli"]
    check(outside, "cli alone knows typer and rich")
    check([place(f, n) for f, n, _, names in uses if "lookahead" in names], "imports within the package are relative")


def test_importing_the_light_rooms_loads_no_torch() -> None:
    rooms = [name for name in ("index", "views", "draft", "cli.app") if module_file("lookahead", *name.split("."))]
    imports = ", ".join(["sys", "lookahead", *(f"lookahead.{name}" for name in rooms)])
    script = f"import {imports}; print(*{{'torch', 'transformers'}} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "\n"), f"{script}\n{result.stdout}{result.stderr}"


def test_nothing_prints_outside_the_command_line() -> None:
    calls = [(file, node) for file, node in nodes(ast.Call) if getattr(node.func, "id", "") == "print"]
    check([place(file, node) for file, node in calls if room(file) != "cli"], "only cli prints")


def test_every_option_is_read_in_exactly_one_room() -> None:
    readers = defaultdict(set)
    for file, node in nodes(ast.Attribute):
        holder = getattr(node.value, "attr", getattr(node.value, "id", ""))
        if holder in ("options", "_options") and room(file) not in ("options", "__init__"):
            readers[node.attr].add(room(file))
    options = next(node for file, node in nodes(ast.ClassDef) if node.name == "Options" and room(file) == "options")
    fields = {
        node.target.id: place(PACKAGE / "options.py", node) for node in options.body if isinstance(node, ast.AnnAssign)
    }
    found = [
        f"{where}: {name} is read in {sorted(readers[name])}"
        for name, where in fields.items()
        if len(readers[name]) != 1
    ]
    check(found, "every field of Options is read in exactly one room")


# ---- Sizes ----


def test_files_and_functions_are_short() -> None:
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    check([f"{place(file)}: {count}" for file, count in lines.items() if count > 400], "a file has 400 lines at most")
    sizes = [(f"{place(file, node)}: {node.name}", node.end_lineno - node.lineno + 1) for file, node in FUNCTIONS]
    check([f"{name}: {size}" for name, size in sizes if size > 60], "a function has 60 lines at most")
    longer = [f"{name}: {size}" for name, size in sizes if size > 30]
    check(longer if len(longer) > len(sizes) / 10 else [], "nine functions in ten have 30 lines at most")


# ---- Kernels ----


def test_kernels_use_nothing_of_another_file() -> None:
    found = []
    for file, function in KERNELS:
        froms = [node for other, node in IMPORTS if other == file and targets(file, node)]
        imported = {alias.asname or alias.name for node in froms for alias in node.names}
        for node in (node for statement in function.body for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and node.id in imported:
                found.append(f"{place(file, node)}: {function.name} uses {node.id}")
    check(found, "a kernel uses no kernel and no constant of another file: numba's cache would keep the old one")


def test_kernels_have_twins_and_few_parameters() -> None:
    names = {node.name for node in parse(ROOT / "tests" / "twins.py").body if isinstance(node, ast.FunctionDef)}
    check(
        [f"{place(f, k)}: {k.name}" for f, k in KERNELS if k.name not in names],
        "every kernel has a twin in tests/twins.py",
    )
    doubles = [(f, k) for f, k in KERNELS if sum(other.name == k.name for _, other in KERNELS) > 1]
    check([f"{place(f, k)}: {k.name}" for f, k in doubles], "no two kernels share a name, and so a twin")
    counts = [(f"{place(f, k)}: {k.name}", sum(isinstance(n, ast.arg) for n in ast.walk(k.args))) for f, k in KERNELS]
    check([f"{name}: {count}" for name, count in counts if count > 8], "a kernel has 8 parameters at most")


# ---- Public names ----


def test_all_is_what_is_visible() -> None:
    visible = [name for name in dir(lookahead) if not name.startswith("_")]
    assert sorted(name for name in visible if name in PUBLIC or name not in LAYER) == PUBLIC


def public_functions(name: str) -> Iterator[tuple[str, object]]:
    """Yield a public function, or the public methods that a public class defines itself, each with its full name."""
    thing = getattr(lookahead, name)
    for key, member in vars(thing).items() if inspect.isclass(thing) else [("", thing)]:
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if inspect.isfunction(function) and (not key.startswith("_") or key == "__call__"):
            yield f"lookahead.{name}.{key}".rstrip("."), function


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented_and_typed(name: str) -> None:
    assert inspect.getdoc(getattr(lookahead, name)), f"lookahead.{name} has no docstring"
    for full_name, function in public_functions(name):
        signature = inspect.signature(function)
        untyped = [
            key for key, p in signature.parameters.items() if p.annotation is p.empty and key not in ("self", "cls")
        ]
        assert inspect.getdoc(function), f"{full_name} has no docstring"
        assert not untyped, f"{full_name} has no type for {', '.join(untyped)}"
        assert signature.return_annotation is not signature.empty, f"{full_name} has no type for what it returns"


def test_the_api_table_lists_the_public_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## API\s*$(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    assert section, "README.md has no heading `## API`"
    rows = {row.split(".")[0] for row in re.findall(r"^\|\s*`(?:lookahead\.)?([\w.]+)", section[1], re.MULTILINE)}
    assert sorted(rows) == PUBLIC, "the first column of the API table lists the public names"
