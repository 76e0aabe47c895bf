//===- test.h - Precompiled header of the test programs of rooms without MLIR --------------------------------*- C++ -*-===//
//
// Only to be precompiled: no source includes it. Every source still includes what it uses; the build without precompiled
// headers (DITRON_USE_PCH=OFF) proves it. Nothing of ours is in it: the tests of ditron/api see the public headers only, and
// no test is compiled again because another room's header changed.
//
//===------------------------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
