#!/usr/bin/env python3
"""Compares the trees of ditron-ast-dump with those of CPython's own parser, ranges included.

usage: compare_with_cpython.py build/bin/ditron-ast-dump FILE_OR_FOLDER...

CPython's tree is printed in the form of ours and the two texts are compared. Not compared: ranges inside f-strings
(CPython 3.11 has them wrong), names that CPython normalises, the begin of decorated definitions (ours starts at the
decorator), match patterns, and literals that Ditron does not represent (complex numbers,
\\N escapes, lone surrogates), which count as equal.
"""
import ast
import pathlib
import subprocess
import sys

BINARY = {"Add": "+", "Sub": "-", "Mult": "*", "MatMult": "@", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
          "LShift": "<<", "RShift": ">>", "BitOr": "|", "BitXor": "^", "BitAnd": "&"}
UNARY = {"Invert": "~", "Not": "not", "UAdd": "+", "USub": "-"}
COMPARE = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not",
           "In": "in", "NotIn": "not in"}
COMPREHENSION = {"ListComp": "list", "SetComp": "set", "DictComp": "dict", "GeneratorExp": "generator"}


class Printer:
    def __init__(self):
        self.lines = []
        self.depth = 0
        self.in_fstring = 0

    def line(self, role, text, range_text=""):
        self.lines.append("  " * self.depth + (role + ": " if role else "") + text + range_text)

    def part(self, role, text, *children):
        self.line(role, text)
        self.depth += 1
        for child_role, child in children:
            self.some(child_role, child)
        self.depth -= 1

    def some(self, role, child):
        if isinstance(child, list):
            for item in child:
                self.node(role, item)
        elif child is not None:
            self.node(role, child)

    def range_of(self, node):
        if self.in_fstring:
            return " <?>"
        begin = f"{node.lineno}:{node.col_offset + 1}"
        if getattr(node, "decorator_list", None):
            begin = "?"
        return f" <{begin}-{node.end_lineno}:{node.end_col_offset + 1}>"

    def head(self, role, node, name, detail=""):
        self.line(role, name + (" " + detail if detail else ""), self.range_of(node))
        self.depth += 1

    def node(self, role, node):
        kind = type(node).__name__
        method = getattr(self, "do_" + kind, None)
        start = self.depth
        if method:
            method(role, node)
        else:
            self.plain(role, node, kind)
        self.depth = start

    # kind -> (detail, [(role, field)])
    PLAIN = {
        "Return": [("value", "value")], "Delete": [("target", "targets")],
        "Assign": [("target", "targets"), ("value", "value")],
        "While": [("condition", "test"), ("body", "body"), ("else", "orelse")],
        "If": [("condition", "test"), ("body", "body"), ("else", "orelse")],
        "Raise": [("exception", "exc"), ("cause", "cause")], "Assert": [("condition", "test"), ("message", "msg")],
        "Pass": [], "Break": [], "Continue": [], "Await": [("value", "value")],
        "IfExp": [("condition", "test"), ("then", "body"), ("else", "orelse")], "Set": [("element", "elts")],
        "List": [("element", "elts")], "Tuple": [("element", "elts")], "Starred": [("value", "value")],
        "Subscript": [("value", "value"), ("index", "slice")],
        "Slice": [("lower", "lower"), ("upper", "upper"), ("step", "step")],
    }

    def plain(self, role, node, kind):
        self.head(role, node, kind)
        for child_role, field in self.PLAIN[kind]:
            self.some(child_role, getattr(node, field))

    def params(self, args):
        positional = args.posonlyargs + args.args
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        rows = [(a, " (positional-only)" if i < len(args.posonlyargs) else "", d)
                for i, (a, d) in enumerate(zip(positional, defaults))]
        if args.vararg:
            rows.append((args.vararg, " (*)", None))
        rows += [(a, " (keyword-only)", d) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
        if args.kwarg:
            rows.append((args.kwarg, " (**)", None))
        for arg, note, default in rows:
            self.part("param", arg.arg + note, ("annotation", arg.annotation), ("default", default))

    def do_FunctionDef(self, role, node):
        is_async = isinstance(node, ast.AsyncFunctionDef)
        self.head(role, node, "FunctionDef", node.name + (" (async)" if is_async else ""))
        self.some("decorator", node.decorator_list)
        self.params(node.args)
        self.some("returns", node.returns)
        self.some("body", node.body)

    do_AsyncFunctionDef = do_FunctionDef

    def keywords(self, keywords):
        for keyword in keywords:
            self.part("keyword", keyword.arg or "**", ("value", keyword.value))

    def do_ClassDef(self, role, node):
        self.head(role, node, "ClassDef", node.name)
        self.some("decorator", node.decorator_list)
        self.some("base", node.bases)
        self.keywords(node.keywords)
        self.some("body", node.body)

    def do_AugAssign(self, role, node):
        self.head(role, node, "AugAssign", BINARY[type(node.op).__name__] + "=")
        self.some("target", node.target)
        self.some("value", node.value)

    def do_AnnAssign(self, role, node):
        self.head(role, node, "AnnAssign", "" if node.simple else "(not simple)")
        self.some("target", node.target)
        self.some("annotation", node.annotation)
        self.some("value", node.value)

    def do_For(self, role, node):
        self.head(role, node, "For", "(async)" if isinstance(node, ast.AsyncFor) else "")
        for child_role, field in [("target", "target"), ("iter", "iter"), ("body", "body"), ("else", "orelse")]:
            self.some(child_role, getattr(node, field))

    do_AsyncFor = do_For

    def do_With(self, role, node):
        self.head(role, node, "With", "(async)" if isinstance(node, ast.AsyncWith) else "")
        for item in node.items:
            self.some("context", item.context_expr)
            self.some("as", item.optional_vars)
        self.some("body", node.body)

    do_AsyncWith = do_With

    def do_Match(self, role, node):
        self.head(role, node, "Match")
        self.some("subject", node.subject)
        for case in node.cases:
            self.part("", "case", ("guard", case.guard), ("body", case.body))

    def do_Try(self, role, node):
        self.head(role, node, "Try")
        self.some("body", node.body)
        star = "*" if isinstance(node, ast.TryStar) else ""
        for handler in node.handlers:
            self.part("", "except" + star + (" as " + handler.name if handler.name else ""), ("type", handler.type),
                      ("body", handler.body))
        self.some("else", node.orelse)
        self.some("finally", node.finalbody)

    do_TryStar = do_Try

    def aliases(self, names):
        for alias in names:
            self.line("name", alias.name + (" as " + alias.asname if alias.asname else ""))

    def do_Import(self, role, node):
        self.head(role, node, "Import")
        self.aliases(node.names)

    def do_ImportFrom(self, role, node):
        self.head(role, node, "ImportFrom", "." * node.level + (node.module or ""))
        self.aliases(node.names)

    def names(self, role, node):
        self.head(role, node, type(node).__name__)
        for name in node.names:
            self.line("name", name)

    do_Global = do_Nonlocal = names

    def do_TypeAlias(self, role, node):
        self.head(role, node, "TypeAlias", node.name.id)
        self.some("value", node.value)

    def do_Expr(self, role, node):
        self.head(role, node, "ExprStmt")
        self.some("value", node.value)

    def do_BoolOp(self, role, node):
        self.head(role, node, "BoolOp", type(node.op).__name__.lower())
        self.some("value", node.values)

    def do_NamedExpr(self, role, node):
        self.head(role, node, "NamedExpr", node.target.id)
        self.some("value", node.value)

    def do_BinOp(self, role, node):
        self.head(role, node, "BinOp", BINARY[type(node.op).__name__])
        self.some("left", node.left)
        self.some("right", node.right)

    def do_UnaryOp(self, role, node):
        self.head(role, node, "UnaryOp", UNARY[type(node.op).__name__])
        self.some("operand", node.operand)

    def do_Lambda(self, role, node):
        self.head(role, node, "Lambda")
        self.params(node.args)
        self.some("body", node.body)

    def do_Dict(self, role, node):
        self.head(role, node, "Dict")
        for key, value in zip(node.keys, node.values):
            self.some("key", key)
            self.some("value" if key else "**", value)

    def comprehension(self, role, node):
        kind = type(node).__name__
        self.head(role, node, "Comprehension", COMPREHENSION[kind])
        self.some("key", getattr(node, "key", None))
        self.some("element", node.value if kind == "DictComp" else node.elt)
        for clause in node.generators:
            self.part("", "for (async)" if clause.is_async else "for", ("target", clause.target),
                      ("iter", clause.iter), ("if", clause.ifs))

    do_ListComp = do_SetComp = do_DictComp = do_GeneratorExp = comprehension

    def do_Yield(self, role, node):
        self.head(role, node, "Yield", "from" if isinstance(node, ast.YieldFrom) else "")
        self.some("value", node.value)

    do_YieldFrom = do_Yield

    def do_Compare(self, role, node):
        self.head(role, node, "Compare", ", ".join(COMPARE[type(op).__name__] for op in node.ops))
        self.some("left", node.left)
        self.some("right", node.comparators)

    def do_Call(self, role, node):
        self.head(role, node, "Call")
        self.some("callee", node.func)
        self.some("arg", node.args)
        self.keywords(node.keywords)

    def do_FormattedValue(self, role, node):
        self.head(role, node, "FormattedValue", "!" + chr(node.conversion) if node.conversion >= 0 else "")
        self.some("value", node.value)
        self.some("format", node.format_spec)

    def do_JoinedStr(self, role, node):
        self.head(role, node, "JoinedStr")
        self.in_fstring += 1
        self.some("part", node.values)
        self.in_fstring -= 1

    def do_Constant(self, role, node):
        self.head(role, node, "Constant", repr(node.value))

    def do_Attribute(self, role, node):
        self.head(role, node, "Attribute", node.attr)
        self.some("value", node.value)

    def do_Name(self, role, node):
        self.head(role, node, "Name", node.id)


def expected_tree(text):
    printer = Printer()
    printer.lines.append("Module")
    printer.depth = 1
    for statement in ast.parse(text).body:
        printer.node("", statement)
    return printer.lines


def same(ours, theirs):
    if ours == theirs:
        return True
    if theirs.endswith(" <?>"):
        return ours.rsplit(" <", 1)[0] == theirs[:-4] or " Unsupported (" in ours
    if " Unsupported (" in ours:
        return "Constant " in theirs or "JoinedStr" in theirs
    if " <?-" in theirs:
        head, _, end = theirs.partition(" <?-")
        return ours.startswith(head + " <") and ours.endswith("-" + end)
    return False


def main():
    tool, *roots = sys.argv[1:]
    files = []
    for root in map(pathlib.Path, roots):
        files += sorted(root.rglob("*.py")) if root.is_dir() else [root]
    compared = refused = 0
    bad = []
    for path in files:
        try:
            text = path.read_bytes()
            theirs = expected_tree(text.decode("utf-8"))
        except (SyntaxError, ValueError, RecursionError):
            refused += 1
            continue
        result = subprocess.run([tool, "--ranges", str(path)], capture_output=True)
        ours = result.stdout.decode("utf-8").split("\n")[:-1]
        compared += 1
        if result.returncode != 0:
            bad.append(f"{path}: {result.stderr.decode()[:400]}")
            continue
        if any(" Unsupported (" in line for line in ours) and len(ours) != len(theirs):
            continue  # an f-string whose parts are not comparable
        for number, (a, b) in enumerate(zip(ours, theirs)):
            if not same(a, b):
                bad.append(f"{path}: line {number} of the tree\n  ours:    {a}\n  CPython: {b}")
                break
        else:
            if len(ours) != len(theirs):
                bad.append(f"{path}: {len(ours)} lines against {len(theirs)}")
    for message in bad[:40]:
        print(message if len(message) < 600 else message[:600] + " ...")
    print(f"{compared} files compared, {len(bad)} differ, {refused} not accepted by CPython")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
