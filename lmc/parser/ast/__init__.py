"""The syntax tree of a `.lmp` file.

Nodes are frozen and compare by identity, so that the checker can keep what it learns in tables keyed by node.  Every node has a
span.  Type expressions are ordinary expressions here; the checker reads them as types.  The tree knows nothing of names or types.
"""

from lmc.parser.ast.expressions import (
    Attribute, Binary, BoolOp, BrokenExpr, Call, Compare, Comprehension, Conditional, Constant, DictExpr, Expr, ForClause, Here, Hole,
    Index, Keyword, ListExpr, Name, RecordExpr, Slice, Text, TextPiece, TupleExpr, Unary,
)
from lmc.parser.ast.items import (
    BrokenItem, Config, ConstDef, ExternDef, FieldDef, File, FunctionDef, Import, Item, Param, RecordDef, TestDef, TypeAlias,
)
from lmc.parser.ast.node import (
    Identifier, Node, children, walk,
)
from lmc.parser.ast.statements import (
    Arm, Assert, Assign, Break, BrokenPattern, Case, Continue, Elif, Export, ExprStmt, For, Fork, If, Join, LiteralPattern, Match, Pass,
    Pattern, RecordPattern, Resume, Return, RoleBlock, Stmt, Try, While, WildcardPattern,
)

__all__ = [
    "Arm", "Assert", "Assign", "Attribute", "Binary", "BoolOp", "Break", "BrokenExpr", "BrokenItem", "BrokenPattern", "Call", "Case", "Compare",
    "Comprehension", "Conditional", "Config", "ConstDef", "Constant", "Continue", "DictExpr", "Elif", "Export", "Expr", "ExprStmt",
    "ExternDef", "FieldDef", "File", "For", "ForClause", "Fork", "FunctionDef", "Here", "Hole", "Identifier", "If", "Import",
    "Index", "Item", "Join", "Keyword", "ListExpr", "LiteralPattern", "Match", "Name", "Node", "Param", "Pass", "Pattern",
    "RecordDef", "RecordExpr", "RecordPattern", "Resume", "Return", "RoleBlock", "Slice", "Stmt", "TestDef", "Text",
    "TextPiece", "Try", "TupleExpr", "TypeAlias", "Unary", "While", "WildcardPattern", "children", "walk",
]
