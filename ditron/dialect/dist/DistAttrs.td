//===- DistAttrs.td - Enumerations of the dist dialect -----------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DIST_ATTRS_TD
#define DITRON_DIALECT_DIST_ATTRS_TD

include "ditron/dialect/dist/DistDialect.td"
include "mlir/IR/EnumAttr.td"

class Dist_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::ditron::dist";
  let genSpecializedAttr = 0;
}

def Dist_Compare : Dist_Enum<"Compare", "comparison that ends a wait", [
  I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"GT", 2, "gt">,
  I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"LT", 4, "lt">, I32EnumAttrCase<"GE", 5, "ge">]>;
def Dist_CompareAttr : EnumAttr<Dist_Dialect, Dist_Compare, "compare">;

def Dist_SignalOp : Dist_Enum<"SignalOp", "how a signal changes its word", [
  I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Add", 1, "add">]>;
def Dist_SignalOpAttr : EnumAttr<Dist_Dialect, Dist_SignalOp, "signal_op">;

def Dist_CommScope : Dist_Enum<"CommScope", "how far away the receiver of a signal is", [
  I32EnumAttrCase<"Gpu", 0, "gpu">, I32EnumAttrCase<"IntraNode", 1, "intra_node">,
  I32EnumAttrCase<"InterNode", 2, "inter_node">]>;
def Dist_CommScopeAttr : EnumAttr<Dist_Dialect, Dist_CommScope, "comm_scope">;

def Dist_ShuffleKind : Dist_Enum<"ShuffleKind", "which lane a shuffle reads", [
  I32EnumAttrCase<"Index", 0, "idx">, I32EnumAttrCase<"Up", 1, "up">, I32EnumAttrCase<"Down", 2, "down">,
  I32EnumAttrCase<"Butterfly", 3, "xor">]>;
def Dist_ShuffleKindAttr : EnumAttr<Dist_Dialect, Dist_ShuffleKind, "shuffle">;

def Dist_ExecScope : Dist_Enum<"ExecScope", "which threads carry out a communication call together", [
  I32EnumAttrCase<"Thread", 0, "thread">, I32EnumAttrCase<"Warp", 1, "warp">, I32EnumAttrCase<"Block", 2, "block">]>;
def Dist_ExecScopeAttr : EnumAttr<Dist_Dialect, Dist_ExecScope, "exec">;

def Dist_OrderKind : Dist_Enum<"OrderKind", "what OpenSHMEM promises of earlier puts", [
  I32EnumAttrCase<"Fence", 0, "fence">, I32EnumAttrCase<"Quiet", 1, "quiet">]>;
def Dist_OrderKindAttr : EnumAttr<Dist_Dialect, Dist_OrderKind, "order_kind">;

def Dist_CollectiveKind : Dist_Enum<"CollectiveKind", "collective operation of a team", [
  I32EnumAttrCase<"Broadcast", 0, "broadcast">, I32EnumAttrCase<"Collect", 1, "collect">]>;
def Dist_CollectiveKindAttr : EnumAttr<Dist_Dialect, Dist_CollectiveKind, "collective">;

def Dist_MultimemReduction : Dist_Enum<"MultimemReduction", "how a load-reduce combines the ranks' words", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Min", 1, "min">, I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"And", 3, "and">, I32EnumAttrCase<"Or", 4, "or">, I32EnumAttrCase<"Xor", 5, "xor">]>;
def Dist_MultimemReductionAttr : EnumAttr<Dist_Dialect, Dist_MultimemReduction, "multimem_reduction"> {
  let assemblyFormat = "`<` $value `>`";
}
#endif
