//===- codegen_test.cpp - From the LLVM dialect to code of the host -------------------------------------------------------===//
//
// What the code generator refuses and what it must not take away.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/sim/Abi.h"
#include "ditron/target/sim/SimCodegen.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace ditron::target {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Expected<SimCode> compile(const std::string &text, const SimCodegenOptions &options = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::LLVM::LLVMDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return invalidArgument("the test's IR does not parse: " + text);
  return emitSimObject(*module, options);
}

/// A function whose frame holds so many bytes.
std::string withFrame(int bytes) {
  return fmt::format(R"(
    llvm.func @use(!llvm.ptr)
    llvm.func @kernel() {{
      %one = llvm.mlir.constant(1 : i64) : i64
      %frame = llvm.alloca %one x !llvm.array<{} x i8> : (i64) -> !llvm.ptr
      llvm.call @use(%frame) : (!llvm.ptr) -> ()
      llvm.return
    }})",
                     bytes);
}

TEST(SimCodegen, RefusesFramesThatNoStackHolds) {
  constexpr int limit = DITRON_SIM_KERNEL_STACK_BYTES;
  Expected<SimCode> fits = compile(withFrame(limit - 1024));
  EXPECT_TRUE(fits.isOk()) << fits.status().message();
  Status status = compile(withFrame(limit + 1024)).status();
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(
      status.message(),
      AllOf(HasSubstr("a thread of this kernel needs 197"),
            HasSubstr("for values that do not fit its registers; at most 196608 are accepted: use smaller blocks "
                      "or more warps")));
}

/// What follows an endless loop must not happen, at no level of optimisation.
TEST(SimCodegen, KeepsEndlessLoops) {
  const char *text = R"(
    llvm.func @after()
    llvm.func @kernel(%n: i32) {
      %zero = llvm.mlir.constant(0 : i32) : i32
      llvm.br ^loop(%n : i32)
    ^loop(%i: i32):
      %more = llvm.icmp "sge" %i, %zero : i32
      %next = llvm.and %i, %n : i32
      llvm.cond_br %more, ^loop(%next : i32), ^done
    ^done:
      llvm.call @after() : () -> ()
      llvm.return
    })";
  for (int level : {0, 1, 2, 3}) {
    Expected<SimCode> code = compile(text, {.optimizationLevel = level, .keepLLVMText = true});
    ASSERT_TRUE(code.isOk()) << code.status().message();
    EXPECT_THAT(code->llvmText, AllOf(HasSubstr("br "), Not(HasSubstr("mustprogress")), Not(HasSubstr("willreturn"))))
        << "level " << level;
  }
}

} // namespace
} // namespace ditron::target
