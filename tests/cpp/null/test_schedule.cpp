#include <algorithm>
#include <cmath>
#include <random>

#include "codegen/schedule.h"
#include "codegen/shifted_rows.h"
#include "tests/cpp/catch.h"
#include "tests/cpp/null/hand_fusion.h"

using namespace fxfuser;
using codegen::ArchInfo;
using codegen::Axis;
using codegen::Fusion;
using codegen::Schedule;
using codegen::ScheduleKind;
using codegen::Tier;
using ir::DType;
using test::HandFusion;

namespace {

const ArchInfo kH200 = ArchInfo::h200();

Schedule schedule_of(const Fusion& fusion, const ArchInfo& arch = kH200, const codegen::ScheduleOptions& options = {}) {
  codegen::Selected selected = codegen::select_schedule(fusion, arch, options);
  REQUIRE(selected.schedule.has_value());
  CAPTURE(codegen::to_string(*selected.schedule));
  return *selected.schedule;
}

std::string refusal(const Fusion& fusion) {
  const codegen::Selected selected = codegen::select_schedule(fusion, kH200, {});
  CHECK_FALSE(selected.schedule.has_value());
  std::string text;
  for (const auto& reason : selected.refusals) text += partitioner::to_string(reason) + "\n";
  return text;
}

Fusion add(std::int64_t count, DType dtype = DType::BFloat16) {
  HandFusion f(std::vector<Axis>{{count}});
  f.store(f.compute({f.load({1}, 0, dtype), f.load({1}, 0, dtype)}), {1}, dtype);
  return f.build();
}

Fusion row_sum(std::int64_t rows, std::int64_t columns, DType dtype = DType::BFloat16) {
  HandFusion f(rows == 1 ? std::vector<Axis>{{columns, true}} : std::vector<Axis>{{rows}, {columns, true}});
  const ir::Sizes in = rows == 1 ? ir::Sizes{1} : ir::Sizes{columns, 1};
  f.store(f.reduce(f.load(in, 0, dtype)), rows == 1 ? ir::Sizes{0} : ir::Sizes{1, 0});
  return f.build();
}

Fusion column_sum(std::int64_t rows, std::int64_t columns, DType dtype = DType::BFloat16) {
  HandFusion f({{rows, true}, {columns}});
  f.store(f.reduce(f.load({columns, 1}, 0, dtype)), {0, 1});
  return f.build();
}

/// (x - sum(x)) / sum((x - sum(x))^2) * w: two rounds, a weight, full and row outputs.
Fusion normalise(std::int64_t rows, std::int64_t columns, DType dtype = DType::BFloat16, bool weighted = true) {
  HandFusion f({{rows}, {columns, true}});
  const auto x = f.load({columns, 1}, 0, dtype), w = weighted ? f.load({0, 1}, 0, dtype) : x;
  const auto mean = f.reduce(x), centered = f.compute({x, mean});
  const auto variance = f.reduce(f.compute({centered, centered}));
  f.store(f.compute({centered, variance, w}), {columns, 1}, dtype);
  f.store(mean, {1, 0});
  return f.build();
}

/// out[i, j] = x[j, i] + y[i, j]
Fusion transpose(std::int64_t rows, std::int64_t columns, DType dtype = DType::Float32) {
  HandFusion f({{rows}, {columns}});
  f.store(f.compute({f.load({1, rows}, 0, dtype), f.load({columns, 1}, 0, dtype)}), {columns, 1}, dtype);
  return f.build();
}

}  // namespace

TEST_CASE("pointwise: one vector a thread where it writes", "[schedule]") {
  const Schedule s = schedule_of(add(1 << 28));
  CHECK(s.kind == ScheduleKind::Pointwise);
  CHECK(s.vector == 8);
  CHECK(s.unroll == 1);
  CHECK(s.threads == 256);
  CHECK(s.index_bits == 32);
  CHECK(schedule_of(add((1 << 28) + 1)).vector == 8);  // the last pack moves element by element
  HandFusion f({{1 << 26}, {3}});
  f.store(f.compute({f.load({3, 1}), f.load({0, 1})}), {3, 1});
  CHECK(schedule_of(f.build()).unroll > 1);  // scalar accesses need more in flight
}

TEST_CASE("pointwise: small tensors take narrow vectors to reach every SM", "[schedule]") {
  CHECK(schedule_of(add(9 * 1024)).vector == 1);
  CHECK(schedule_of(add(132 * 128 * 2)).vector == 2);
  CHECK(schedule_of(add(1 << 22)).vector == 8);
}

TEST_CASE("pointwise: a space without axes is one point", "[schedule]") {
  HandFusion f(std::vector<Axis>{});
  f.store(f.compute({f.load({}), f.load({})}), {});
  const Schedule s = schedule_of(f.build());
  CHECK(s.kind == ScheduleKind::Pointwise);
  CHECK(s.vector == 1);
}

TEST_CASE("pointwise: an output that covers a part of the space is refused", "[schedule]") {
  HandFusion f({{64}, {1024}});
  const auto w = f.compute({f.load({0, 1})});
  f.store(f.compute({f.load({1024, 1}), w}), {1024, 1});
  f.store(w, {0, 1});
  CHECK_THAT(refusal(f.build()), ContainsSubstring("smaller than the iteration space"));
}

TEST_CASE("reduction: threads a row follow its length", "[schedule]") {
  for (const auto& [columns, lanes] :
       {std::pair<std::int64_t, int>{64, 8}, {128, 16}, {2048, 32}, {4096, 64}, {16384, 128}, {65536, 256}}) {
    const Schedule s = schedule_of(row_sum(65536, columns));
    CAPTURE(columns);
    CHECK(s.kind == ScheduleKind::Reduction);
    CHECK(s.inner);
    CHECK(s.threads_per_row == lanes);
    CHECK(s.split == 1);
  }
}

TEST_CASE("reduction: few long rows are split over blocks, short ones are not", "[schedule]") {
  const Schedule full = schedule_of(row_sum(1, 1 << 28));
  CHECK(full.split > 132);
  CHECK(full.split <= 132 * 8);
  CHECK(full.threads_per_row == full.threads);
  CHECK(schedule_of(row_sum(7, 1 << 25)).split > 16);
  CHECK(schedule_of(row_sum(1, 4096)).split == 1);
}

TEST_CASE("reduction: columns take 32 lanes of a vector and about one resident wave", "[schedule]") {
  for (const std::int64_t columns : {256, 4096, 32768}) {
    const Schedule s = schedule_of(column_sum((1 << 28) / columns, columns));
    CAPTURE(columns, codegen::to_string(s));
    CHECK_FALSE(s.inner);
    CHECK(s.vector == 8);
    CHECK(s.threads_per_row == 32);
    CHECK(s.rows_per_block >= 8);
    CHECK(s.unroll == 8);
    const std::int64_t blocks = columns / (32 * 8) * s.split;
    CHECK(blocks <= 132 * 8);
    CHECK(blocks >= 128);
  }
  CHECK(schedule_of(column_sum(64, 1 << 20)).split == 1);
}

TEST_CASE("reduction: rows too short for a wide vector lie side by side", "[schedule]") {
  for (const std::int64_t columns : {2, 3, 7, 12, 31, 63}) {
    const Schedule s = schedule_of(column_sum(((1 << 28) + 5) / columns, columns));
    CAPTURE(columns, codegen::to_string(s));
    CHECK(s.vector == 8);
    CHECK(s.rows_across > 1);
    CHECK(s.threads_per_row >= 8);
    CHECK(s.threads >= 192);
    CHECK(s.split == 132 * 2);
  }
  CHECK(schedule_of(column_sum(1 << 25, 8)).rows_across == 1);   // a row is a whole vector
  CHECK(schedule_of(column_sum(1 << 20, 255)).rows_across == 1);  // long rows
  CHECK(schedule_of(column_sum(500, 7)).rows_across == 1);        // few rows
  // A pointer that allows no wide vector leaves the rows one below the other.
  codegen::ScheduleOptions options;
  options.input_alignment = {2};
  CHECK(schedule_of(column_sum(1 << 25, 7), kH200, options).rows_across == 1);
}

TEST_CASE("reduction: short columns take a block's threads across", "[schedule]") {
  for (const std::int64_t rows : {1, 2, 5}) {
    const Schedule s = schedule_of(column_sum(rows, 1 << 24));
    CAPTURE(rows, codegen::to_string(s));
    CHECK(s.threads >= 128);
    CHECK_FALSE(s.compensated);  // no chain long enough to lose anything
  }
  CHECK(schedule_of(column_sum(1 << 20, 512)).compensated);
  // Fewer blocks than SMs otherwise: narrower packs, then fewer threads across, of a sector at least.
  for (const auto& [rows, columns] : {std::pair(2, 4096), std::pair(128, 128), std::pair(256, 512)}) {
    const Schedule s = schedule_of(column_sum(rows, columns, DType::Float32));
    CAPTURE(rows, columns, codegen::to_string(s));
    CHECK(s.vector == 1);
    CHECK(s.threads_per_row == (columns == 4096 ? 16 : 8));
  }
}

TEST_CASE("normalization: rows go from a warp to a block to several passes", "[schedule]") {
  CHECK(schedule_of(normalise(65536, 256)).tier == Tier::Warp);
  CHECK(schedule_of(normalise(65536, 1024)).threads_per_row == 32);
  const Schedule block = schedule_of(normalise(65536, 4096));
  CHECK(block.tier == Tier::Block);
  CHECK(block.threads_per_row == 256);
  CHECK(block.vectors_per_thread == 2);
  CHECK(schedule_of(normalise(8192, 8192)).threads == 512);
  CHECK(schedule_of(normalise(8192, 32768)).tier == Tier::Block);
  const Schedule cluster = schedule_of(normalise(2048, 131072));
  CHECK(cluster.tier == Tier::Cluster);
  CHECK(cluster.cluster * cluster.threads_per_row * cluster.vectors_per_thread * cluster.vector >= 131072);
  CHECK(cluster.teams * cluster.cluster <= kH200.sm_count);  // all resident
  CHECK(cluster.stages >= 3);
  CHECK(schedule_of(normalise(64, 1 << 22)).tier == Tier::MultiPass);
  CHECK(schedule_of(normalise(2048, 131072), ArchInfo::generic(80)).tier == Tier::MultiPass);
}

TEST_CASE("normalization: long rows without weights refill the shared memory of small blocks", "[schedule]") {
  const auto plain = [](std::int64_t rows, std::int64_t columns, DType dtype = DType::Float32) { return schedule_of(normalise(rows, columns, dtype, false)); };
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{4096, 32768}, {1024, 131072}, {4, 131072}, {64, 401408}}) {
    const Schedule s = plain(rows, columns);
    CAPTURE(codegen::to_string(s));
    CHECK(s.tier == Tier::Cluster);
    CHECK(s.refills());
    CHECK(s.teams * s.cluster <= s.min_blocks * kH200.sm_count);  // all resident
    CHECK(s.teams <= rows);
  }
  CHECK(plain(1024, 131072).min_blocks == 4);
  CHECK(plain(8192, 8192).tier == Tier::Block);
  CHECK(plain(8192, 32768, DType::BFloat16).tier == Tier::Block);
  CHECK_FALSE(schedule_of(normalise(4096, 32768, DType::Float32)).refills());  // a weight stays in registers
  CHECK(schedule_of(normalise(4096, 32768, DType::Float32)).tier == Tier::Cluster);
}

TEST_CASE("normalization: a few rows are shared by more threads than a warp", "[schedule]") {
  CHECK(schedule_of(normalise(1024, 1024, DType::Float32)).tier == Tier::Block);
  CHECK(schedule_of(normalise(65536, 1024, DType::Float32)).tier == Tier::Block);  // 4 KiB
  CHECK(schedule_of(normalise(65536, 512, DType::Float32)).tier == Tier::Warp);
  CHECK(schedule_of(normalise(16, 64, DType::Float32)).tier == Tier::Warp);
  CHECK(schedule_of(row_sum(1024, 1024, DType::Float32)).threads_per_row == 128);
  CHECK(schedule_of(row_sum(65536, 1024, DType::Float32)).threads_per_row == 32);
}

TEST_CASE("normalization: toy tensors reach every tier", "[schedule]") {
  const ArchInfo toy = ArchInfo::toy();
  CHECK(schedule_of(normalise(8, 16, DType::Float32), toy).tier == Tier::Warp);
  CHECK(schedule_of(normalise(8, 256, DType::Float32), toy).tier == Tier::Block);
  CHECK(schedule_of(normalise(8, 2500, DType::Float32), toy).tier == Tier::Cluster);
  CHECK(schedule_of(normalise(8, 20000, DType::Float32), toy).tier == Tier::MultiPass);
}

TEST_CASE("normalization: the innermost axis may be kept", "[schedule]") {
  HandFusion f({{32}, {100, true}, {512}});
  const auto x = f.load({51200, 512, 1});
  f.store(f.compute({x, f.reduce(x)}), {51200, 512, 1});
  const Schedule s = schedule_of(f.build());
  CHECK(s.kind == ScheduleKind::Normalization);
  CHECK_FALSE(s.inner);
  CHECK(s.vector >= 1);
}

TEST_CASE("normalization: two rounds with outputs at row level only", "[schedule]") {
  HandFusion f({{64}, {1024, true}});
  const auto x = f.load({1024, 1});
  f.store(f.reduce(f.compute({x, f.reduce(x)})), {1, 0});
  CHECK(schedule_of(f.build()).kind == ScheduleKind::Normalization);
}

TEST_CASE("a device is planned for as its part, known by name", "[schedule]") {
  CHECK(ArchInfo::of_device("NVIDIA H200", 90).bytes_in_flight == kH200.bytes_in_flight);
  CHECK(ArchInfo::of_device("NVIDIA H100 PCIe", 90).bytes_in_flight == ArchInfo::generic(90).bytes_in_flight);
  CHECK(ArchInfo::of_device("NVIDIA A100", 80).sm == 80);
}

Fusion rows_and_columns(std::int64_t rows, std::int64_t columns) {
  HandFusion f({{rows}, {columns, true}});
  const auto x = f.load({columns, 1});
  f.store(f.reduce(x), {1, 0});
  f.store(f.reduce(x, 1), {0, 1});
  return f.build();
}

TEST_CASE("normalization: rows and columns in slabs while the row and its columns fit a block", "[schedule]") {
  for (const std::int64_t columns : {32, 1000, 1024, 4096, 8192}) {
    const Schedule s = schedule_of(rows_and_columns(65536, columns));
    CHECK(s.kind == ScheduleKind::Normalization);
    CHECK((s.tier == Tier::Warp || s.tier == Tier::Block));
    CHECK(s.slabs >= kH200.sm_count);
    CHECK(s.slabs * s.threads <= kH200.sm_count * 1024);  // all resident
  }
  for (const std::int64_t columns : {32768, 131072}) {
    const Schedule s = schedule_of(rows_and_columns(2048, columns));
    CAPTURE(codegen::to_string(s));
    CHECK(s.tier == Tier::Cluster);
    CHECK(s.slabs == s.teams);
    CHECK(s.stages >= 3);
  }
  CHECK(schedule_of(rows_and_columns(4, 1024)).slabs == 1);
  CHECK_THAT(refusal(rows_and_columns(64, 1000000)), ContainsSubstring("no registers for the columns"));
}

TEST_CASE("rows and columns whose rows are not contiguous are refused by name", "[schedule]") {
  HandFusion f({{64, true}, {1024}});
  const auto x = f.load({1024, 1});
  f.store(f.reduce(x), {0, 1});
  f.store(f.reduce(x, 2), {1, 0});
  CHECK_THAT(refusal(f.build()), ContainsSubstring("rows are not contiguous"));
}

TEST_CASE("transpose: inputs along another axis go through a tile", "[schedule]") {
  const Schedule s = schedule_of(transpose(16384, 16384));
  CHECK(s.kind == ScheduleKind::Transpose);
  CHECK(s.tile == 64);
  CHECK(s.tile_pack == 4);
  CHECK(schedule_of(transpose(1024, 1024)).tile == 32);  // too few large ones for every SM
  CHECK(s.tile_axis == 0);
  CHECK(s.transposed_inputs == std::vector<std::uint32_t>{0});
  CHECK(s.vector_input == std::vector<bool>{false, true});
  CHECK(schedule_of(transpose(16385, 16384)).tile_pack == 1);
  CHECK(schedule_of(transpose(16384, 16384, DType::BFloat16)).tile == 64);
  CHECK(schedule_of(transpose(16384, 8)).kind == ScheduleKind::Pointwise);
}

TEST_CASE("a host split depends on the sizes only", "[schedule]") {
  for (const auto& fusion :
       {row_sum(1, 1 << 24), row_sum(3, 1 << 22), column_sum(1 << 22, 7), normalise(64, 4096), add(999)}) {
    Schedule one = schedule_of(fusion, ArchInfo::host(1)), many = schedule_of(fusion, ArchInfo::host(64));
    CHECK(one == many);
    CHECK(one.grain >= 1);
  }
  CHECK(schedule_of(row_sum(1, 1 << 24), ArchInfo::host(2)).split > 1);
  CHECK(schedule_of(row_sum(4096, 4096), ArchInfo::host(2)).split == 1);
}

TEST_CASE("sizes of zero have a schedule", "[schedule]") {
  for (const ArchInfo& arch : {kH200, ArchInfo::host(4)}) {
    CHECK(schedule_of(add(0), arch).kind == ScheduleKind::Pointwise);
    CHECK(schedule_of(row_sum(4, 0), arch).split == 1);
    CHECK(schedule_of(row_sum(0, 4), arch).kind == ScheduleKind::Reduction);
    CHECK(schedule_of(column_sum(0, 4), arch).kind == ScheduleKind::Reduction);
    CHECK(schedule_of(normalise(4, 0), arch).kind == ScheduleKind::Normalization);
    CHECK(schedule_of(normalise(0, 4), arch).kind == ScheduleKind::Normalization);
  }
}

TEST_CASE("every schedule holds together", "[schedule]") {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    return static_cast<std::int64_t>(static_cast<double>(low) *
                                     std::pow(static_cast<double>(high) / static_cast<double>(low), u));
  };
  const std::vector<ArchInfo> machines{
      kH200, ArchInfo::toy(), ArchInfo::generic(75), ArchInfo::generic(86), ArchInfo::generic(100), ArchInfo::host(8)};
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t rows = pick(1, 1 << 20), columns = pick(1, 1 << 20);
    const DType dtype = i % 3 == 0 ? DType::Float32 : i % 3 == 1 ? DType::BFloat16 : DType::Float64;
    const Fusion fusion = i % 5 == 0   ? add(rows * columns, dtype)
                          : i % 5 == 1 ? row_sum(rows, columns, dtype)
                          : i % 5 == 2 ? column_sum(rows, columns, dtype)
                          : i % 5 == 3 ? normalise(rows, columns, dtype)
                                       : transpose(rows, columns, dtype);
    const ArchInfo& arch = machines[static_cast<std::size_t>(i) % machines.size()];
    const Schedule s = schedule_of(fusion, arch);
    CAPTURE(rows, columns, arch.name, codegen::to_string(s), codegen::to_string(fusion));
    REQUIRE(s.vector >= 1);
    const std::size_t along = s.kind == ScheduleKind::Interleave ? static_cast<std::size_t>(s.long_axis) : fusion.axes.size() - 1;
    REQUIRE((s.shifted || fusion.axes.empty() || s.rows_across * fusion.axes[along].size % s.vector == 0));
    REQUIRE(s.across_input.size() == (s.shifted ? fusion.inputs.size() : 0));
    REQUIRE(s.unroll >= 1);
    REQUIRE(s.split >= 1);
    REQUIRE(s.vector_input.size() == fusion.inputs.size());
    REQUIRE(s.vector_output.size() == fusion.outputs.size());
    if (s.kind == ScheduleKind::Reduction || s.kind == ScheduleKind::Normalization) {
      const int idle = s.threads - s.threads_per_row * s.rows_per_block;
      REQUIRE((idle == 0 || (s.rows_across > 1 && idle > 0 && idle < 32)));
      REQUIRE((s.rows_across == 1 || s.rows_across * fusion.axes.back().size == s.threads_per_row * s.vector));
      REQUIRE(s.split <= std::max<std::int64_t>(fusion.reduced_numel(), 1));
      if (s.kind == ScheduleKind::Normalization && (s.tier == Tier::Warp || s.tier == Tier::Block))
        REQUIRE(std::int64_t{s.threads_per_row} * s.vectors_per_thread * s.vector >= codegen::spanned(s, fusion.reduced_numel()));
      if (s.tier == Tier::Warp) REQUIRE(s.threads_per_row <= 32);
    }
    if (arch.target == codegen::Target::Cuda) {
      REQUIRE(s.threads >= 32);
      REQUIRE(s.threads <= std::min(1024, arch.max_threads_per_sm));
      REQUIRE(s.threads % 32 == 0);
    }
  }
}
