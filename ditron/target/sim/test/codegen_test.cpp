//===- codegen_test.cpp - From the LLVM dialect to code of the host -------------------------------------------------------===//
//
// What the code generator refuses and what it must not take away.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include "ditron/abi/Simulator.h"
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

/// Lines of the longest basic block in the text of a module.
size_t longestBlock(std::string_view text) {
  size_t longest = 0, lines = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const bool isInstruction = text.substr(at, 2) == "  ";
    lines = isInstruction ? lines + 1 : 0;
    longest = std::max(longest, lines);
  }
  return longest;
}

/// Functions that are parts of others.
size_t numParts(std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find("define "); at != text.npos; at = text.find("define ", at + 1))
    count += text.substr(at, text.find('\n', at) - at).find(".part.") != std::string_view::npos;
  return count;
}

/// A function of so many calls in a row, each of which takes the `width` last results and gives another.
std::string calls(int count, int width) {
  std::string text = "llvm.func @next(f32, i32) -> f32\nllvm.func @kernel(%n: i32, %p: !llvm.ptr) {\n";
  for (int i = 0; i < width; ++i)
    text += fmt::format("  %v{} = llvm.load volatile %p : !llvm.ptr -> f32\n", i);
  for (int i = width; i < count; ++i)
    text += fmt::format("  %c{0} = llvm.call @next(%v{1}, %n) : (f32, i32) -> f32\n  %m{0} = llvm.fmul %c{0}, %v{1} : f32\n"
                        "  %v{0} = llvm.fadd %m{0}, %c{0} : f32\n",
                        i, i - width);
  for (int i = count - width; i < count; ++i)
    text += fmt::format("  %w{0} = llvm.call @next(%v{0}, %n) : (f32, i32) -> f32\n", i);
  return text + "  llvm.return\n}\n";
}

/// Time grows with the square of a block's length: long ones become several functions, unless too much is alive everywhere.
TEST(SimCodegen, CutsLongBlocks) {
  Expected<SimCode> narrow = compile(calls(4000, 10), {.keepLLVMText = true});
  ASSERT_TRUE(narrow.isOk()) << narrow.status().message();
  EXPECT_GE(numParts(narrow->llvmText), 8u);
  EXPECT_LT(longestBlock(narrow->llvmText), 1200u);

  Expected<SimCode> wide = compile(calls(1500, 200), {.keepLLVMText = true});
  ASSERT_TRUE(wide.isOk()) << wide.status().message();
  EXPECT_LE(numParts(wide->llvmText), 1u); // what is alive becomes less at the end
}

/// A cut between them would round the product.
TEST(SimCodegen, CutsKeepProductsWithTheirSums) {
  Expected<SimCode> code = compile(calls(4000, 3), {.keepLLVMText = true});
  ASSERT_TRUE(code.isOk()) << code.status().message();
  ASSERT_GE(numParts(code->llvmText), 8u);
  int products = 0;
  for (std::string_view text = code->llvmText; !text.empty();) {
    const size_t end = text.find("\n}");
    const std::string_view function = text.substr(0, end);
    for (size_t at = function.find(" = fmul"); at != function.npos; at = function.find(" = fmul", at + 1), ++products) {
      const std::string_view name = function.substr(function.rfind('%', at), at - function.rfind('%', at));
      const size_t sum = function.find("fadd contract float", at);
      ASSERT_NE(sum, function.npos) << name;
      EXPECT_THAT(std::string(function.substr(sum, function.find('\n', sum) - sum)), HasSubstr(name));
    }
    text = end == text.npos ? std::string_view() : text.substr(end + 2);
  }
  EXPECT_EQ(products, 3997);
}

} // namespace
} // namespace ditron::target
