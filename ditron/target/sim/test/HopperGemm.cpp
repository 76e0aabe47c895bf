//===- HopperGemm.cpp - IR text of a warp-specialised persistent matrix product, for tests --------------------------------===//
#include "HopperGemm.h"

#include "ditron/layout/Wgmma.h"

#include <fmt/format.h>

using namespace ditron::layout;

namespace ditron::target::test {

namespace {

int bytesOf(const std::string &type) {
  if (type.starts_with("f8") || type == "i8")
    return 1;
  return type == "f32" || type == "i32" ? 4 : 2;
}

const std::vector<int> rowsContiguous = {1, 0};

/// A tile of rows with the widest swizzle.
SharedLayout tileOf(int rows, int columns, int bytes) {
  return swizzledShared({rows, columns}, rowsContiguous, bytes * 8,
                        largestSwizzle({rows, columns}, rowsContiguous, bytes * 8));
}

/// Columns of one box of such a tile.
int panel(int columns, int bytes) { return std::min(columns, 128 / bytes); }

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

} // namespace

int HopperGemm::elementBytes() const { return bytesOf(element); }
int HopperGemm::outputBytes() const { return bytesOf(output); }

uint64_t HopperGemm::sharedBytes() const {
  return uint64_t(stages) * (blockM + blockN) * blockK * elementBytes() + uint64_t(blockM) * blockN * outputBytes() +
         16 * stages;
}

std::vector<MapArgument> HopperGemm::maps(int m, int n, int k) const {
  auto map = [](size_t array, int rows, int columns, int boxRows, int boxColumns, int bytes) {
    int box = panel(boxColumns, bytes);
    return MapArgument{array,         uint32_t(rows),  uint32_t(columns),    uint32_t(std::min(boxRows, 256)),
                       uint32_t(box), uint32_t(bytes), uint32_t(box * bytes)};
  };
  int bytes = elementBytes();
  return {isAColumnMajor ? map(0, k, m, blockK, blockM, bytes) : map(0, m, k, blockM, blockK, bytes),
          isBRowMajor ? map(1, k, n, blockK, blockN, bytes) : map(1, n, k, blockN, blockK, bytes),
          map(2, m, n, blockM, blockN, outputBytes())};
}

std::string HopperGemm::text() const {
  const int bytes = elementBytes();
  SharedLayout a = isAColumnMajor ? tileOf(blockK, blockM, bytes) : tileOf(blockM, blockK, bytes);
  SharedLayout b = isBRowMajor ? tileOf(blockK, blockN, bytes) : tileOf(blockN, blockK, bytes);
  SharedLayout stage = tileOf(blockM, blockN, outputBytes());
  const int swap[] = {1, 0};
  DistributedLayout c = *wgmmaAccumulator({blockM, blockN}, numWarps);
  int64_t bytesA = int64_t(stages) * blockM * blockK * bytes, bytesB = int64_t(stages) * blockN * blockK * bytes;
  int64_t atStage = bytesA + bytesB, atBars = atStage + int64_t(blockM) * blockN * outputBytes();
  auto buffer = [](int slots, const SharedLayout &layout, const std::string &element, const char *name) {
    return fmt::format("!dgpu.buffer<{} x {}x{} x {}, #{}>", slots, layout.shape()[0], layout.shape()[1], element,
                       name);
  };
  std::vector<MapArgument> boxes = maps(blockM, blockN, blockK);
  auto mapAttribute = [&](int i, const std::string &type) {
    return fmt::format(
        "{{dgpu.tensor_map = {{base = {} : i64, box = [{} : i64, {} : i64], swizzle = {} : i64, element = "
        "{}}}}}",
        boxes[i].array, boxes[i].boxRows, boxes[i].boxColumns, boxes[i].swizzleBytes, type);
  };
  std::string text = fmt::format("#a = #dgpu.shared<{}>\n#at = #dgpu.shared<{}>\n#b = #dgpu.shared<{}>\n#bt = "
                                 "#dgpu.shared<{}>\n#stage = #dgpu.shared<{}>\n#c = #dgpu.layout<{}>\n",
                                 a.toString(), a.permute(swap).toString(), b.toString(), b.permute(swap).toString(),
                                 stage.toString(), c.toString());
  if (isAInRegisters)
    text += fmt::format("#ra = #dgpu.layout<{}>\n", wgmmaOperandA(c, blockK, bytes * 8)->toString());
  text += R"(
module attributes {dgpu.num_warps = @W : i32, dgpu.threads_per_warp = 32 : i32, dgpu.wgmma, dgpu.tma} {
  func.func @kernel(%a: !tile.ptr<@E>, %b: !tile.ptr<@E>, %c: !tile.ptr<@O>, %m: i32, %n: i32, %k: i32,
                    %mapA: !dgpu.tensor_map @MA, %mapB: !dgpu.tensor_map @MB, %mapC: !dgpu.tensor_map @MC,
                    %world: !tile.ptr<i64>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %S = arith.constant @S : i32
    %BM = arith.constant @BM : i32
    %BN = arith.constant @BN : i32
    %BK = arith.constant @BK : i32
    %pid = tile.program_id 0
    %programs = tile.num_programs 0
    %roundM = arith.constant @UPM : i32
    %roundN = arith.constant @UPN : i32
    %roundK = arith.constant @UPK : i32
    %upM = arith.addi %m, %roundM : i32
    %upN = arith.addi %n, %roundN : i32
    %upK = arith.addi %k, %roundK : i32
    %tilesM = arith.divsi %upM, %BM : i32
    %tilesN = arith.divsi %upN, %BN : i32
    %tiles = arith.muli %tilesM, %tilesN : i32
    %steps = arith.divsi %upK, %BK : i32
    %full = dgpu.mbarrier_alloc {count = 1 : i32, offset_bytes = @ATFULL : i64} : !dgpu.mbarriers<@S>
    %empty = dgpu.mbarrier_alloc {count = @W : i32, offset_bytes = @ATEMPTY : i64} : !dgpu.mbarriers<@S>
    %bufA = dgpu.buffer_alloc {offset_bytes = 0 : i64} : @BUFA
    %bufB = dgpu.buffer_alloc {offset_bytes = @ATB : i64} : @BUFB
    %stage = dgpu.buffer_alloc {offset_bytes = @ATSTAGE : i64} : @STAGE
@PERMUTE
    dgpu.warp_specialize consumer {
      %zero = arith.constant dense<@ZERO> : tensor<@BMx@BNx@ACC, #c>
      %end:2 = scf.for %tile = %pid to %tiles step %programs iter_args(%slotT = %c0, %parT = %c0) -> (i32, i32) : i32 {
        %tm = arith.divsi %tile, %tilesN : i32
        %tn = arith.remsi %tile, %tilesN : i32
        %row = arith.muli %tm, %BM : i32
        %col = arith.muli %tn, %BN : i32
        %r:4 = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero, %slot = %slotT, %par = %parT, %prev = %slotT)
            -> (tensor<@BMx@BNx@ACC, #c>, i32, i32, i32) : i32 {
          dgpu.mbarrier_wait %full[%slot], %par : !dgpu.mbarriers<@S>
@DOT
          %next = arith.addi %slot, %c1 : i32
          %wraps = arith.cmpi eq, %next, %S : i32
          %slotN = arith.select %wraps, %c0, %next : i32
          %flip = arith.extui %wraps : i1 to i32
          %parN = arith.xori %par, %flip : i32
          scf.yield %w, %slotN, %parN, %slot : tensor<@BMx@BNx@ACC, #c>, i32, i32, i32
        }
        %done = dgpu.warpgroup_wait 0, %r#0 : tensor<@BMx@BNx@ACC, #c>
        %any = arith.cmpi sgt, %steps, %c0 : i32
@LAST
@CONVERT
        dgpu.tma_store_wait 0 read
        dgpu.barrier
        dgpu.buffer_store %out, %stage[%c0] : tensor<@BMx@BNx@O, #c>, @STAGE
        dgpu.fence_async
        dgpu.barrier
        dgpu.tma_store %stage[%c0] to %mapC[%row, %col] : @STAGE
        dgpu.tma_store_commit
        scf.yield %r#1, %r#2 : i32, i32
      }
      dgpu.tma_store_wait 0 read
    } producer {
@SIGNAL
      %end:2 = scf.for %tile = %pid to %tiles step %programs iter_args(%slotT = %c0, %parT = %c1) -> (i32, i32) : i32 {
        %tm = arith.divsi %tile, %tilesN : i32
        %tn = arith.remsi %tile, %tilesN : i32
        %row = arith.muli %tm, %BM : i32
        %col = arith.muli %tn, %BN : i32
@WAIT
        %r:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%slot = %slotT, %par = %parT) -> (i32, i32) : i32 {
          %at = arith.muli %i, %BK : i32
          dgpu.mbarrier_wait %empty[%slot], %par : !dgpu.mbarriers<@S>
          dgpu.mbarrier_expect %full[%slot], @BYTES : !dgpu.mbarriers<@S>
          dgpu.tma_load %mapA[@COORDA] to %bufA[%slot], %full[%slot] : @BUFA, !dgpu.mbarriers<@S>
          dgpu.tma_load %mapB[@COORDB] to %bufB[%slot], %full[%slot] : @BUFB, !dgpu.mbarriers<@S>
          %next = arith.addi %slot, %c1 : i32
          %wraps = arith.cmpi eq, %next, %S : i32
          %slotN = arith.select %wraps, %c0, %next : i32
          %flip = arith.extui %wraps : i1 to i32
          %parN = arith.xori %par, %flip : i32
          scf.yield %slotN, %parN : i32, i32
        }
        scf.yield %r#0, %r#1 : i32, i32
      }
    } {producer_warps = 4 : i32}
    return
  }
}
)";
  std::string bufferA = buffer(stages, a, element, "a"), bufferB = buffer(stages, b, element, "b");
  std::string seenA = isAColumnMajor ? buffer(stages, a.permute(swap), element, "at") : bufferA;
  std::string seenB = isBRowMajor ? bufferB : buffer(stages, b.permute(swap), element, "bt");
  std::string permute;
  if (isAColumnMajor)
    permute += fmt::format("    %opA = dgpu.buffer_permute %bufA [1, 0] : {} -> {}\n", bufferA, seenA);
  if (!isBRowMajor)
    permute += fmt::format("    %opB = dgpu.buffer_permute %bufB [1, 0] : {} -> {}\n", bufferB, seenB);
  const std::string operandA = isAColumnMajor ? "%opA" : "%bufA", operandB = isBRowMajor ? "%bufB" : "%opB";
  std::string dot;
  if (isAInRegisters) {
    // Registers must not change under a dot: wait at once, and free the slot.
    dot = fmt::format(R"(
          %ra = dgpu.buffer_load {}[%slot] : {} -> tensor<@BMx@BKx@E, #ra>
          %d = dgpu.warpgroup_dot %ra, {}[%slot], %acc : tensor<@BMx@BKx@E, #ra>, {} -> tensor<@BMx@BNx@ACC, #c>
          %w = dgpu.warpgroup_wait 0, %d : tensor<@BMx@BNx@ACC, #c>
          dgpu.mbarrier_arrive %empty[%slot] : !dgpu.mbarriers<@S>)",
                      operandA, seenA, operandB, seenB);
  } else {
    dot = fmt::format(R"(
          %d = dgpu.warpgroup_dot {}[%slot], {}[%slot], %acc : {}, {} -> tensor<@BMx@BNx@ACC, #c>
          %w = dgpu.warpgroup_wait 1, %d : tensor<@BMx@BNx@ACC, #c>
          %isLater = arith.cmpi ne, %i, %c0 : i32
          dgpu.mbarrier_arrive %empty[%prev] if %isLater : !dgpu.mbarriers<@S>)",
                      operandA, operandB, seenA, seenB);
  }
  std::string convert = "        %out = arith.truncf %done : tensor<@BMx@BNx@ACC, #c> to tensor<@BMx@BNx@O, #c>";
  if (output == accumulator())
    text = replaceAll(text, "%out", "%done"), convert.clear();
  text = replaceAll(
      text, "@SIGNAL",
      waitsForSignal
          ? "      %one64 = arith.constant 1 : i64\n      %signal = tile.addptr %world, %c1 : !tile.ptr<i64>, i32"
          : "");
  text = replaceAll(
      text, "@WAIT",
      waitsForSignal ? "        %token = dist.wait ge gpu acquire %signal, %c1, %one64 : !tile.ptr<i64>, i64" : "");
  text = replaceAll(text, "@PERMUTE", permute);
  text = replaceAll(text, "@DOT", dot);
  text = replaceAll(text, "@LAST",
                    isAInRegisters ? "" : "        dgpu.mbarrier_arrive %empty[%r#3] if %any : !dgpu.mbarriers<@S>");
  text = replaceAll(text, "@CONVERT", convert);
  text = replaceAll(text, "@COORDA", isAColumnMajor ? "%at, %row" : "%row, %at");
  text = replaceAll(text, "@COORDB", isBRowMajor ? "%at, %col" : "%col, %at");
  text = replaceAll(text, "@BYTES", std::to_string((blockM + blockN) * blockK * bytes));
  text = replaceAll(text, "@BUFA", bufferA);
  text = replaceAll(text, "@BUFB", bufferB);
  text = replaceAll(text, "@STAGE", buffer(1, stage, output, "stage"));
  text = replaceAll(text, "@MA", mapAttribute(0, element));
  text = replaceAll(text, "@MB", mapAttribute(1, element));
  text = replaceAll(text, "@MC", mapAttribute(2, output));
  text = replaceAll(text, "@ATFULL", std::to_string(atBars));
  text = replaceAll(text, "@ATEMPTY", std::to_string(atBars + 8 * stages));
  text = replaceAll(text, "@ATB", std::to_string(bytesA));
  text = replaceAll(text, "@ATSTAGE", std::to_string(atStage));
  text = replaceAll(text, "@ZERO", element == "i8" ? "0" : "0.0");
  text = replaceAll(text, "@ACC", accumulator());
  text = replaceAll(text, "@UPM", std::to_string(blockM - 1));
  text = replaceAll(text, "@UPN", std::to_string(blockN - 1));
  text = replaceAll(text, "@UPK", std::to_string(blockK - 1));
  text = replaceAll(text, "@BM", std::to_string(blockM));
  text = replaceAll(text, "@BN", std::to_string(blockN));
  text = replaceAll(text, "@BK", std::to_string(blockK));
  text = replaceAll(text, "@W", std::to_string(numWarps));
  text = replaceAll(text, "@S", std::to_string(stages));
  text = replaceAll(text, "@E", element);
  return replaceAll(text, "@O", output);
}

} // namespace ditron::target::test
