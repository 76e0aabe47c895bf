//===- DgpuAttrs.td - Layout attributes --------------------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DGPU_ATTRS_TD
#define DITRON_DIALECT_DGPU_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "ditron/dialect/dgpu/DgpuDialect.td"

def Dgpu_LayoutAttr : AttrDef<Dgpu_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "which register, lane and warp holds which element of a tile";
  let description = [{
    `#dgpu.layout<64x32, reg = {j0 j1 i5}, lane = [j2 j3 j4 i0 i1], warp = [i2 i3 i4 *]>`: letters are dimensions (i is the first), numbers
    are bits of the index, `*` is a machine bit that holds copies. The text is that of ditron::layout::DistributedLayout, which this attribute wraps.
  }];
  let parameters = (ins
    AttrParameter<"::ditron::layout::DistributedLayout", "the layout", "const ::ditron::layout::DistributedLayout &">:$layout
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dgpu_SharedLayoutAttr : AttrDef<Dgpu_Dialect, "SharedLayout"> {
  let mnemonic = "shared";
  let summary = "which offset in shared memory holds which element of a tile";
  let description = [{The text is that of ditron::layout::SharedLayout, in which every offset bit is the XOR of coordinate bits.}];
  let parameters = (ins AttrParameter<"::ditron::layout::SharedLayout", "the layout", "const ::ditron::layout::SharedLayout &">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}
#endif
