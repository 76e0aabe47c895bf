//===- npy_test.cpp - NumPy array files ---------------------------------------------------------------------------===//
#include "ditron/support/Npy.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

using namespace ditron;
using testing::HasSubstr;

static std::vector<std::byte> bytesOf(const std::string &text) {
  std::vector<std::byte> result(text.size());
  std::memcpy(result.data(), text.data(), text.size());
  return result;
}

/// A file of version 1 with this header and data, built by hand.
static std::vector<std::byte> file(std::string header, std::string data, char major = 1) {
  std::string text = std::string("\x93NUMPY") + major + '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  if (major > 1)
    text += std::string(2, '\0');
  return bytesOf(text + header + data);
}

TEST(Npy, roundTripAllTypes) {
  const std::string path = testing::TempDir() + "/ditron_npy_test.npy";
  for (const std::string &name : dataTypeNames()) {
    DataType type = *parseDataType(name);
    std::vector<int64_t> shape = {3, 1, 2};
    std::vector<std::byte> data(6 * sizeOf(type));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = std::byte(type == DataType::I1 ? i & 1 : i);
    ASSERT_TRUE(writeNpy(path, type, shape, data).isOk());
    Expected<NpyArray> array = readNpy(path);
    ASSERT_TRUE(array.isOk()) << array.status().message();
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->data, data);
    EXPECT_EQ(sizeOf(array->type), sizeOf(type));
    // bf16 and fp8 come back as words; all others as themselves.
    if (type != DataType::BF16 && type != DataType::F8E5 && type != DataType::F8E4NV) {
      EXPECT_EQ(array->type, type);
    }
  }
  std::filesystem::remove(path);
}

TEST(Npy, headerIsAligned) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {5}, {128, 64}, {1000000, 0}}) {
    std::vector<std::byte> data(elementCount(shape) * 4);
    std::vector<std::byte> bytes = formatNpy(DataType::F32, shape, data);
    EXPECT_EQ((bytes.size() - data.size()) % 64, 0u);
    Expected<NpyArray> array = parseNpy(bytes, "memory");
    ASSERT_TRUE(array.isOk()) << array.status().message();
    EXPECT_EQ(array->shape, shape);
  }
}

TEST(Npy, readsNumpysForms) {
  Expected<NpyArray> two = parseNpy(
      file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }   \n", std::string("\1\0\0\0\2\0\0\0", 8), 2),
      "two");
  ASSERT_TRUE(two.isOk()) << two.status().message();
  EXPECT_EQ(two->type, DataType::I32);
  EXPECT_EQ(loadElement(DataType::I32, two->data.data() + 4), 2.0);
  // One long dimension is in both orders.
  EXPECT_TRUE(parseNpy(file("{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2)}", "abcd"), "f").isOk());
  EXPECT_EQ(parseNpy(file("{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}", "abcd"), "v")->type,
            DataType::U16);
}

static std::string errorOf(const Expected<NpyArray> &array) {
  EXPECT_FALSE(array.isOk());
  return array.isOk() ? "" : array.status().message();
}

TEST(Npy, errorsSayWhatIsWrong) {
  EXPECT_THAT(errorOf(readNpy("/no/such.npy")), HasSubstr("/no/such.npy"));
  EXPECT_THAT(errorOf(parseNpy(bytesOf("hello, this is not it"), "x.npy")), HasSubstr("x.npy: not an .npy file"));
  EXPECT_THAT(
      errorOf(parseNpy(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "0123456789abcdef"), "x")),
      HasSubstr("Fortran order; save numpy.ascontiguousarray"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd"), "x")),
              HasSubstr("big-endian"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "abcd"), "x")),
              HasSubstr("element type '<c8' is not supported; accepted are b1"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "abcd"), "x")),
              HasSubstr("needs 12 bytes of data, the file has 4"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd"), "x")),
              HasSubstr("structured arrays"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr': '<f4', 'shape': (1,)}", "abcd"), "x")), HasSubstr("lacks"));
  EXPECT_THAT(
      errorOf(parseNpy(file("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}", ""), "x")),
      HasSubstr("too large"));
  EXPECT_THAT(errorOf(parseNpy(file("{'descr: 3", ""), "x")), HasSubstr("damaged .npy header"));
  EXPECT_THAT(writeNpy("/tmp/ditron_never.npy", DataType::F32, std::vector<int64_t>{2}, bytesOf("abcd")).message(),
              HasSubstr("needs 8 bytes, 4 were given"));
}

// A file that was cut short, or whose bytes were changed, gives an array or an error, never a crash.
TEST(Npy, damagedFilesAreRefused) {
  const std::vector<std::byte> whole =
      file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", "0123456789abcdef");
  ASSERT_TRUE(parseNpy(whole, "whole").isOk());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parseNpy(std::span(whole).first(size), "cut").isOk()) << size;
  }
  for (size_t position = 0; position < whole.size(); ++position) {
    for (int value : {0, 0x27, 0x28, 0x39, 0xff}) {
      std::vector<std::byte> changed = whole;
      changed[position] = std::byte(value);
      Expected<NpyArray> array = parseNpy(changed, "changed");
      if (array.isOk()) {
        EXPECT_EQ(array->data.size(), static_cast<size_t>(array->elementCount()) * sizeOf(array->type));
      }
    }
  }
}
