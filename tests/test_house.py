"""The rules of the house that the import contracts of pyproject.toml cannot express."""

import ast
import builtins
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("backoffice", "payments_gateway", "tools")
MOST_MODULES, MOST_LINES = 14, 600
HAS_A_FILE_PER_KIND = "backoffice.operations.kinds"
HANDS_NAMES_ON = "payments_gateway"  # its `__init__.py` is the whole public surface of the client
# Each has the layer of the package around it.
NAMED_BY_DJANGO = ("management", "commands", "templatetags", "formats", "fr")
# The sandbox's models can be imported only after the settings are known and Django is set up.
IMPORTS_AFTER_SETUP = {"payments_gateway.sandbox.__main__"}
IMPORTS_BY_STRING = {"__import__", "import_module", "import_string"}
IN_BACKTICKS = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`")


@cache
def modules() -> dict[str, Path]:
    """The modules of the application by name, without migrations."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {module_name(path): path for path in sorted(files) if "migrations" not in path.parts}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


def is_package(module: str) -> bool:
    return modules()[module].name == "__init__.py"


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imports_in(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Module, name in it (empty for `import module`) and the name here, of each import of a module of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            yield from ((node.module or "", alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "", one.asname or one.name) for one in node.names if is_ours(one.name))


def private_names_used(module: str) -> Iterator[str]:
    tree, imported_modules = parsed(module), set[str]()
    for source, name, here in imports_in(tree):
        if any(map(is_private, [*source.split("."), name])):
            yield f"{module} imports {source}.{name}"
        if not name or f"{source}.{name}" in modules():
            imported_modules.add(here)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = ast.unparse(node.value)
            if owner in imported_modules:
                yield f"{module} uses {owner}.{node.attr}"


def test_modules_use_no_private_names_of_others() -> None:
    assert [use for module in modules() for use in private_names_used(module)] == []


def test_folders_have_a_limited_number_of_modules() -> None:
    folders = Counter(module.rpartition(".")[0] for module in modules() if not is_package(module))
    assert folders["backoffice.core"] > 1  # they were found
    large = {folder for folder, count in folders.items() if count > MOST_MODULES}
    assert large <= {HAS_A_FILE_PER_KIND}


def test_modules_have_a_limited_number_of_lines() -> None:
    lines = {module: len(path.read_text().splitlines()) for module, path in modules().items()}
    assert {module: count for module, count in lines.items() if count > MOST_LINES} == {}


@cache
def names_taken() -> set[tuple[str, str]]:
    """Which names modules import from which module."""
    return {(source, name) for module in modules() for source, name, _ in imports_in(parsed(module))}


def names_handed_on(package: str) -> set[str]:
    """What a package imports, and others import from it or are allowed to; its submodules are its own."""
    tree = parsed(package)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    here = {alias.asname or alias.name for node in imports for alias in node.names}
    exported = {alias.name for node in imports for alias in node.names if alias.name == alias.asname}
    exported |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "__all__"}
    taken = {name for name in here if (package, name) in names_taken()}
    return {name for name in exported | taken if f"{package}.{name}" not in modules()}


def test_packages_reexport_no_names() -> None:
    packages = [module for module in modules() if is_package(module) and module != HANDS_NAMES_ON]
    assert {package: names for package in packages if (names := names_handed_on(package))} == {}


def late_imports(module: str) -> Iterator[str]:
    """Imports of ours that are not made when the module is: in a function, or for type checkers alone."""
    for node in ast.walk(parsed(module)):
        is_ready = module.endswith(".apps") and isinstance(node, ast.FunctionDef) and node.name == "ready"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_ready:
            yield from (f"{module}.{node.name}: {source}" for source, _, _ in imports_in(node))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (f"{module}, TYPE_CHECKING: {source}" for source, _, _ in imports_in(node))


def test_imports_are_at_module_level() -> None:
    """Save where Django has to be set up first: in `AppConfig.ready`, and in the process of the sandbox."""
    assert [
        one for module in modules() if module not in IMPORTS_AFTER_SETUP for one in late_imports(module)
    ] == []


def test_no_imports_by_string() -> None:
    by_string = [
        f"{module}: {ast.unparse(node.func)}"
        for module in modules()
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in IMPORTS_BY_STRING
    ]
    assert by_string == []


def test_every_package_has_an_exhaustive_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layered = {
        container
        for contract in contracts
        if contract["type"] == "layers" and contract.get("exhaustive")
        for container in contract["containers"]
    }
    parents = {module.rpartition(".")[0] for module in modules()} - {""}
    assert {one for one in parents if one.rpartition(".")[2] not in NAMED_BY_DJANGO} == layered


def docstrings_in(tree: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings of modules, classes and functions, and the strings below assignments that document them."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def names_in(module: str) -> Iterator[str]:
    """The names in the code of a module, those in its strings (columns, fields of the API, settings) included."""
    tree = parsed(module)
    docstrings = {id(node) for node in docstrings_in(tree)}
    yield from [*module.split("."), modules()[module].name.removesuffix(".py"), "py"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in docstrings:
                yield from re.findall(r"\w+", node.value)
            continue
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield from text.split(".")


def test_docstrings_name_only_what_exists() -> None:
    """What is in backticks is a name in the code of the application, not in its docstrings alone."""
    known = {name for module in modules() for name in names_in(module)} | set(dir(builtins))
    assert [
        f"{module}:{docstring.lineno}: `{name}`"
        for module in modules()
        for docstring in docstrings_in(parsed(module))
        for name in IN_BACKTICKS.findall(str(docstring.value))
        if not known.issuperset(name.split("."))
    ] == []
