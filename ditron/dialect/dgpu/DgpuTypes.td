//===- DgpuTypes.td - Shared memory buffers ----------------------------------------------------------------*- tablegen -*-===//
#ifndef DITRON_DIALECT_DGPU_TYPES_TD
#define DITRON_DIALECT_DGPU_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "ditron/dialect/dgpu/DgpuAttrs.td"

def Dgpu_BufferType : TypeDef<Dgpu_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a ring of tiles in shared memory";
  let description = [{
    `!dgpu.buffer<3 x 64x32 x f16, #dgpu.shared<...>>`: three slots, each a 64x32 tile of f16 laid out by the shared layout. A single
    tile is a buffer of one slot. Slot s starts at s * slotBytes.
  }];
  let parameters = (ins "int64_t":$slots, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::ditron::dgpu::SharedLayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSlotBytes() const;
    int64_t getBytes() const { return getSlots() * getSlotBytes(); }
  }];
}
#endif
