// What a kernel declares and asks for at launch fits the shared memory of a block: a launch that asks for more is refused by the driver.

#include <fmt/format.h>

#include <map>
#include <regex>

#include "codegen/kernel_source.h"
#include "codegen/schedule.h"
#include "tests/cpp/catch.h"
#include "tests/cpp/null/hand_fusion.h"

using namespace fxfuser;
using codegen::ArchInfo;
using codegen::Fusion;
using codegen::Schedule;
using ir::DType;
using test::HandFusion;

namespace {

/// `rounds` reductions, each over what the one before left of the row, and an output of full size.
Fusion normalise(std::int64_t rows, std::int64_t columns, int rounds, DType dtype) {
  HandFusion f({{rows}, {columns, true}});
  const auto x = f.load({columns, 1}, 0, dtype);
  auto y = x;
  for (int round = 0; round < rounds; ++round) y = f.compute({x, f.reduce(y)});
  f.store(y, {columns, 1}, dtype);
  return f.build();
}

/// A backward of that: two row inputs, and the columns' sums.
Fusion with_columns(std::int64_t rows, std::int64_t columns, DType dtype) {
  HandFusion f({{rows}, {columns, true}});
  const auto x = f.load({columns, 1}, 0, dtype), dy = f.load({columns, 1}, 0, dtype);
  const auto product = f.compute({x, dy});
  f.store(f.compute({product, f.reduce(product)}), {columns, 1}, dtype);
  f.store(f.reduce(product, 1), {0, 1}, dtype);
  return f.build();
}

/// Bytes of the arrays that the text of an entry declares in shared memory.
std::int64_t declared_bytes(const std::string& text) {
  const std::map<std::string, std::int64_t> sizes = {{"float", 4}, {"double", 8}, {"fxf_sum<float>", 8}, {"fxf_sum<double>", 16}};
  std::map<std::string, std::int64_t> types;
  const std::regex named(R"(typedef (?:fxf_posted<(.*?) >|(fxf_sum<\w+>|float|double)) (\w+);)"), array(R"(FXF_SHARED\((.*?), \w+, (\d+)\))");
  for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at) types[(*at)[3]] = sizes.at((*at)[1].matched ? (*at)[1] : (*at)[2]);
  std::int64_t bytes = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), array), end; at != end; ++at) {
    const std::string type = (*at)[1];
    bytes += std::stoll((*at)[2]) * (types.count(type) != 0 ? types.at(type) : sizes.at(type));
  }
  return bytes;
}

void check_fits(const Fusion& fusion, const ArchInfo& arch, int& rings) {
  const codegen::Selected selected = codegen::select_schedule(fusion, arch, {});
  if (!selected.schedule.has_value() || selected.schedule->stages == 0) return;
  const codegen::KernelSource source = codegen::emit(fusion, *selected.schedule, arch);
  CAPTURE(arch.name, codegen::to_string(*selected.schedule));
  ++rings;
  constexpr std::int64_t kBarriers = 16;
  for (const auto& launch : source.launches) {
    const std::size_t begin = source.text.find(launch.entry + "(");
    REQUIRE(begin != std::string::npos);
    const std::string entry = source.text.substr(begin, source.text.find("FXF_KERNEL", begin) - begin);
    CHECK(static_cast<std::int64_t>(launch.shared_bytes) + declared_bytes(entry) + kBarriers <= arch.shared_per_block);
    if (selected.schedule->refills()) CHECK((static_cast<std::int64_t>(launch.shared_bytes) + declared_bytes(entry) + kBarriers) * selected.schedule->min_blocks <= arch.shared_per_sm);
  }
}

}  // namespace

TEST_CASE("shared memory: rows of any length fit a block, whatever is exchanged", "[schedule]") {
  int rings = 0;
  for (const ArchInfo& arch : {ArchInfo::h200(), ArchInfo::generic(80), ArchInfo::generic(100), ArchInfo::generic(120)}) {
    for (const DType dtype : {DType::BFloat16, DType::Float32, DType::Float64}) {
      for (std::int64_t columns = 4096; columns <= 1 << 20; columns += (columns / 2048 + 1) * 256) {
        for (const int rounds : {1, 2, 3}) check_fits(normalise(64, columns, rounds, dtype), arch, rings);
        check_fits(with_columns(2048, columns, dtype), arch, rings);
      }
    }
  }
  CHECK(rings > 100);
}
