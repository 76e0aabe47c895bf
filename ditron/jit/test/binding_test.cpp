//===- binding_test.cpp - From a call's arguments to a signature --------------------------------------------------===//
#include "ditron/jit/ArgumentBinding.h"

#include <gmock/gmock.h>

using namespace ditron;
using namespace ditron::jit;
using compiler::KernelInterface;
using frontend::ConstexprArgument;
using frontend::ConstValue;
using runtime::Argument;
using runtime::Pointer;
using testing::HasSubstr;

namespace {

/// def k(x, n, scale=2.0, mask=None, BLOCK: tl.constexpr = 64)
KernelInterface makeInterface() {
  KernelInterface kernel;
  kernel.name = "k";
  kernel.parameters.resize(5);
  kernel.parameters[0].name = "x";
  kernel.parameters[1].name = "n";
  kernel.parameters[2].name = "scale";
  kernel.parameters[2].hasDefault = true;
  kernel.parameters[2].defaultValue = ConstexprArgument(ConstValue::floating(2.0));
  kernel.parameters[3].name = "mask";
  kernel.parameters[3].hasDefault = true;
  kernel.parameters[3].defaultValue = ConstexprArgument(ConstValue::none());
  kernel.parameters[4].name = "BLOCK";
  kernel.parameters[4].isConstexpr = true;
  kernel.parameters[4].hasDefault = true;
  kernel.parameters[4].defaultValue = ConstexprArgument(ConstValue::integer(int64_t(64)));
  return kernel;
}

Pointer at(uintptr_t address, DataType type = DataType::BF16) { return {reinterpret_cast<void *>(address), type}; }

/// The item of a parameter; fails the test when there is none.
const frontend::ArgumentSpec &item(const BoundCall &bound, std::string_view name) {
  for (const frontend::ArgumentSpec &spec : bound.signature.arguments)
    if (spec.name == name)
      return spec;
  ADD_FAILURE() << "no item for " << name << " in " << bound.signature.str();
  return bound.signature.arguments.front();
}

BoundCall bind(const CallArguments &call, KernelInterface kernel = makeInterface()) {
  Expected<BoundCall> bound = bindArguments(kernel, call);
  EXPECT_TRUE(bound.isOk()) << bound.status().message();
  return bound.isOk() ? *bound : BoundCall();
}

std::string errorOf(const CallArguments &call, KernelInterface kernel = makeInterface()) {
  Expected<BoundCall> bound = bindArguments(kernel, call);
  EXPECT_FALSE(bound.isOk());
  return bound.isOk() ? "" : bound.status().message();
}

} // namespace

TEST(Binding, positionalKeywordAndDefault) {
  BoundCall bound = bind({{at(256)}, {{"n", 1000}, {"BLOCK", 128}}});
  EXPECT_EQ(item(bound, "x").type.signatureText(), "*bf16");
  EXPECT_EQ(item(bound, "n").type.signatureText(), "i32");
  EXPECT_EQ(item(bound, "scale").type.signatureText(), "fp32");
  EXPECT_TRUE(item(bound, "mask").isConstexpr());
  EXPECT_EQ(std::get<ConstValue>(*item(bound, "BLOCK").constexprValue).toInt64(), 128);
  // The run-time ones, in the order of the parameters, the default's value among them.
  ASSERT_EQ(bound.arguments.size(), 3u);
  EXPECT_EQ(bound.arguments[1].get<int64_t>(), 1000);
  EXPECT_EQ(bound.arguments[2].get<double>(), 2.0);
}

TEST(Binding, tuplesByTheirElements) {
  BoundCall bound = bind({{}, {{"x.0", at(256)}, {"n", 1000}, {"x.1.a", 7}, {"x.1.b", 1}}});
  EXPECT_EQ(item(bound, "x").str(), "x=(*bf16:16, (a=i32, constexpr b=1))");
  // Run-time values keep the order of the parameters: both of the tuple, then n.
  ASSERT_EQ(bound.arguments.size(), 4u);
  EXPECT_EQ(bound.arguments[1].get<int64_t>(), 7);
  EXPECT_EQ(bound.arguments[2].get<int64_t>(), 1000);
  EXPECT_THAT(errorOf({{}, {{"x.0", 3}, {"x.2", 3}, {"n", 3}}}), HasSubstr("element 1 is missing"));
  EXPECT_THAT(errorOf({{at(256)}, {{"x.0", 3}, {"n", 3}}}), HasSubstr("several values for argument 'x.0'"));
  EXPECT_THAT(errorOf({{}, {{"x.0", 3}, {"x.0.a", 3}, {"n", 3}}}), HasSubstr("a value and elements"));
}

TEST(Binding, tensorDescriptors) {
  auto signatureOf = [](runtime::TensorDescriptor descriptor, KernelInterface kernel = makeInterface()) {
    return item(bind({{std::move(descriptor), 1000}, {}}, std::move(kernel)), "x").str();
  };
  EXPECT_EQ(signatureOf({at(256), {100, 72}, {}, {64, 32}}), "x=tensordesc<bf16[64,32]>:16");
  EXPECT_EQ(signatureOf({at(256), {100, 64}, {72, 1}, {64, 32}}), "x=tensordesc<bf16[64,32]>:16:16");
  EXPECT_EQ(signatureOf({at(256), {100, 64}, {70, 1}, {64, 32}, true}), "x=tensordesc<bf16[64,32],nan>:1:16");
  EXPECT_EQ(signatureOf({at(258), {100, 70}, {72, 1}, {64, 32}}), "x=tensordesc<bf16[64,32]>");
  KernelInterface plain = makeInterface();
  plain.parameters[0].specialiseAlignment = false;
  EXPECT_EQ(signatureOf({at(256), {100, 64}, {}, {64, 32}}, plain), "x=tensordesc<bf16[64,32]>");
  EXPECT_THAT(errorOf({{runtime::TensorDescriptor{at(256), {100}, {2}, {64}}, 1000}, {}}),
              HasSubstr("kernel 'k', argument 'x': tensordesc<bf16[64]>: the last stride is 2"));
  EXPECT_THAT(errorOf({{at(256), 1000}, {{"BLOCK", runtime::TensorDescriptor{at(256), {100}, {1}, {64}}}}}),
              HasSubstr("takes a compile-time value, given tensordesc<bf16[64]> of a tensor [100]"));
}

TEST(Binding, specialisation) {
  EXPECT_EQ(item(bind({{at(256), 32}, {}}), "n").divisibility, 16u);
  EXPECT_EQ(item(bind({{at(256), 0}, {}}), "n").divisibility, 16u);
  EXPECT_EQ(item(bind({{at(256), -48}, {}}), "n").divisibility, 16u);
  EXPECT_EQ(item(bind({{at(256), 33}, {}}), "n").divisibility, 1u);
  EXPECT_EQ(item(bind({{at(256), 2}, {}}), "x").divisibility, 16u);
  EXPECT_EQ(item(bind({{at(264), 2}, {}}), "x").divisibility, 1u);
  BoundCall one = bind({{at(256), 1}, {}});
  ASSERT_TRUE(item(one, "n").isConstexpr());
  EXPECT_EQ(std::get<ConstValue>(*item(one, "n").constexprValue).toInt64(), 1);
  EXPECT_EQ(one.arguments.size(), 2u);
  // True is not 1, and neither is a 1 of a given type.
  EXPECT_EQ(item(bind({{at(256), true}, {}}), "n").type.signatureText(), "i1");
  EXPECT_EQ(item(bind({{at(256), Argument::typed(DataType::I64, 1)}, {}}), "n").type.signatureText(), "i64");
}

TEST(Binding, typesOfIntegers) {
  EXPECT_EQ(item(bind({{at(0), INT32_MIN}, {}}), "n").type.signatureText(), "i32");
  EXPECT_EQ(item(bind({{at(0), int64_t(1) << 31}, {}}), "n").type.signatureText(), "i64");
  EXPECT_EQ(item(bind({{at(0), ~uint64_t(0)}, {}}), "n").type.signatureText(), "u64");
  EXPECT_EQ(item(bind({{at(0), 2.5}, {}}), "n").type.signatureText(), "fp32");
}

TEST(Binding, compileTimeValues) {
  EXPECT_TRUE(item(bind({{runtime::None(), 2}, {}}), "x").isConstexpr());
  BoundCall dtype = bind({{at(0), 2}, {{"BLOCK", DataType::F16}}});
  EXPECT_EQ(std::get<frontend::LangType>(*item(dtype, "BLOCK").constexprValue).signatureText(), "fp16");
  BoundCall text = bind({{at(0), 2}, {{"BLOCK", "gelu"}}});
  EXPECT_EQ(std::get<ConstValue>(*item(text, "BLOCK").constexprValue).getString(), "gelu");
  // The default of a compile-time parameter is the frontend's to evaluate.
  for (const frontend::ArgumentSpec &spec : bind({{at(0), 2}, {}}).signature.arguments)
    EXPECT_NE(spec.name, "BLOCK");
}

TEST(Binding, doNotSpecialise) {
  KernelInterface kernel = makeInterface();
  kernel.parameters[1].specialiseValue = kernel.parameters[1].specialiseAlignment = false;
  kernel.parameters[0].specialiseAlignment = false;
  BoundCall bound = bind({{at(256), 1}, {}}, kernel);
  EXPECT_FALSE(item(bound, "n").isConstexpr());
  EXPECT_EQ(item(bind({{at(256), 16}, {}}, kernel), "n").divisibility, 1u);
  EXPECT_EQ(item(bound, "x").divisibility, 1u);
}

TEST(Binding, annotations) {
  KernelInterface kernel = makeInterface();
  kernel.parameters[1].annotation = "tl.int64";
  EXPECT_EQ(item(bind({{at(0), 7}, {}}, kernel), "n").type.signatureText(), "i64");
  kernel.parameters[1].annotation = "int";
  EXPECT_EQ(item(bind({{at(0), 7}, {}}, kernel), "n").type.signatureText(), "i32");
  kernel.parameters[0].annotation = "'*fp16'";
  EXPECT_THAT(errorOf({{at(0), 7}, {}}, kernel), HasSubstr("annotated *fp16, given null bf16 pointer"));
}

TEST(Binding, errors) {
  EXPECT_EQ(errorOf({{at(0)}, {}}), "kernel 'k' lacks argument 'n'");
  EXPECT_THAT(errorOf({{at(0), 1, 2.0, 3, 4, 5}, {}}),
              HasSubstr("at most 5 positional arguments (x, n, scale, mask, BLOCK)"));
  EXPECT_THAT(errorOf({{at(0), 1}, {{"BLOKC", 3}}}), HasSubstr("no parameter 'BLOKC'; did you mean 'BLOCK'?"));
  EXPECT_THAT(errorOf({{at(0), 1}, {{"n", 3}}}), HasSubstr("several values for argument 'n'"));
  EXPECT_THAT(errorOf({{at(0), 2}, {{"BLOCK", at(16)}}}), HasSubstr("takes a compile-time value, given bf16 pointer"));
}
