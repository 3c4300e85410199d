#include "codegen/shifted_rows.h"

#include "codegen/schedule_parts.h"
#include "tests/cpp/catch.h"
#include "tests/cpp/null/hand_fusion.h"

using namespace fxfuser;
using codegen::ArchInfo;
using codegen::Fusion;
using codegen::Schedule;
using codegen::ScheduleOptions;
using ir::DType;
using test::HandFusion;

namespace {

const ArchInfo kH200 = ArchInfo::h200();
using Flags = std::vector<bool>;

Schedule schedule_of(const Fusion& fusion, const ScheduleOptions& options = {}, const ArchInfo& arch = kH200) {
  const auto selected = select_schedule(fusion, arch, options);
  REQUIRE(selected.schedule.has_value());
  return *selected.schedule;
}

/// out[i, j] = x[i, j] * w[j] / sum_j x[i, j], with the given row strides of x and out.
Fusion normalise(std::int64_t rows, std::int64_t n, std::int64_t x_stride, std::int64_t out_stride, std::int64_t x_offset = 0, DType dtype = DType::BFloat16) {
  HandFusion f({{rows}, {n, true}});
  const auto x = f.load({x_stride, 1}, x_offset, dtype);
  f.store(f.compute({x, f.reduce(x), f.load({0, 1}, 0, dtype)}), {out_stride, 1}, dtype);
  return f.build();
}

Schedule odd_rows(std::int64_t n) { return schedule_of(normalise(65536, n, n, n)); }

}  // namespace

TEST_CASE("rows of odd length move in whole packs, a weight across two", "[shifted]") {
  const Schedule s = odd_rows(4095);
  CHECK(s.shifted);
  CHECK(s.vector == 8);
  CHECK(s.vector_input == Flags{true, true});
  CHECK(s.across_input == Flags{false, true});
  CHECK(s.vector_output == Flags{true});
  CHECK_FALSE(s.exact);
  // A row that starts at the last element of a pack has a pack more.
  CHECK(s.threads_per_row * s.vectors_per_thread * s.vector >= 4095 + 7);
  CHECK(schedule_of(normalise(65536, 4095, 4095, 4095, 0, DType::Float32)).vector == 4);
}

TEST_CASE("a weight of wider elements does not narrow the packs", "[shifted]") {
  HandFusion f({{64}, {4095, true}});
  const auto x = f.load({4095, 1}, 0, DType::BFloat16);
  f.store(f.compute({x, f.reduce(x), f.load({0, 1}, 0, DType::Float32)}), {4095, 1}, DType::BFloat16);
  const Schedule s = schedule_of(f.build());
  CHECK(s.vector == 8);
  CHECK(s.across_input == Flags{false, true});
}

TEST_CASE("rows that have packs of their own, or hardly any, are not shifted", "[shifted]") {
  for (const std::int64_t n : {4096, 4094, 15}) CHECK_FALSE(odd_rows(n).shifted);
  CHECK_FALSE(schedule_of(normalise(64, 4095, 4095, 4095), {}, ArchInfo::host(8)).shifted);
}

TEST_CASE("what decides is the stride, not the length", "[shifted]") {
  CHECK(schedule_of(normalise(64, 4096, 4097, 4097)).across_input == Flags{false, true});
  // Other shifts than the output's: packs across two of the memory, as long as they are aligned themselves.
  CHECK(schedule_of(normalise(64, 4095, 4095 + 8, 4095)).across_input == Flags{false, true});
  CHECK(schedule_of(normalise(64, 4095, 4096, 4095)).across_input == Flags{true, true});
  CHECK(schedule_of(normalise(64, 4095, 4095, 4095, 3)).across_input == Flags{true, true});
}

TEST_CASE("a pointer off the border of packs has none", "[shifted]") {
  ScheduleOptions options;
  options.input_alignment = {2, 16};
  CHECK_FALSE(schedule_of(normalise(64, 4095, 4095, 4095), options).shifted);
  options.input_alignment = {16, 2};
  CHECK(schedule_of(normalise(64, 4095, 4095, 4095), options).vector == 1);
  options.input_alignment = {16, 16};
  CHECK(schedule_of(normalise(64, 4095, 4095, 4095), options).shifted);
}

TEST_CASE("a bound inside a row leaves its rows as they are", "[shifted]") {
  HandFusion f({{64}, {4095, true}});
  const auto x = f.load({4095, 1}, 0, DType::BFloat16);
  f.expr(x).bounds = {{{{0, 1}, 0}, 0, 4000}};
  f.store(f.compute({x, f.reduce(x)}), {4095, 1}, DType::BFloat16);
  CHECK_FALSE(schedule_of(f.build()).shifted);
}

TEST_CASE("shifts repeat", "[shifted]") {
  for (const auto& [stride, period] : {std::pair{4095, 8}, std::pair{4095 * 3, 8}, std::pair{4097, 8}}) {
    const Fusion fusion = normalise(64, 4095, stride, stride);
    CHECK(codegen::shift_period(fusion, schedule_of(fusion)) == period);
  }
  HandFusion f({{4}, {16}, {4095, true}});  // two axes of rows, that don't join
  const auto x = f.load({4095 * 17, 4095, 1}, 0, DType::BFloat16);
  f.store(f.compute({x, f.reduce(x)}), {4095 * 17, 4095, 1}, DType::BFloat16);
  const Fusion fusion = f.build();
  REQUIRE(schedule_of(fusion).shifted);
  CHECK(codegen::shift_period(fusion, schedule_of(fusion)) == 0);
}

TEST_CASE("the end of a tensor is one past what its loads reach", "[shifted]") {
  const Fusion fusion = normalise(64, 4095, 4100, 4095, 3);
  CHECK(codegen::load_end(fusion, fusion.body[0]) == 3 + 63 * 4100 + 4095);
  HandFusion f({{64}, {100}});
  const auto index = f.load({1, 0}, 0, DType::Int64);
  const auto x = f.load({0, 1});
  f.expr(x).indirect = {{index, 100, 50}};
  f.store(x, {100, 1});
  const Fusion gathered = f.build();
  CHECK(codegen::load_end(gathered, gathered.body[x]) == 50 * 100);
}
