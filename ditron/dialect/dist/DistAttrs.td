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
#endif
