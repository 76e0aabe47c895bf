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
    /// The same bytes seen transposed: dimension d of the result is dimension order[d].
    BufferType permuted(::llvm::ArrayRef<int32_t> order) const;
  }];
}

def Dgpu_MbarriersType : TypeDef<Dgpu_Dialect, "Mbarriers"> {
  let mnemonic = "mbarriers";
  let summary = "a row of mbarriers in shared memory, 8 bytes each";
  let parameters = (ins "int64_t":$slots);
  let assemblyFormat = "`<` $slots `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const { return 8 * getSlots(); }
  }];
}

def Dgpu_TensorMapType : TypeDef<Dgpu_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "what the hardware's tensor copies know of a tensor in global memory";
  let description = [{
    Only kernel arguments have this type. The argument's attribute `dgpu.tensor_map` says from which other arguments the launcher builds
    the 128 bytes.
  }];
}
#endif
