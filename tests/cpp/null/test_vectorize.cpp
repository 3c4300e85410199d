#include "codegen/schedule.h"
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

Schedule vectorise(const Fusion& fusion, const ScheduleOptions& options = {}) {
  Schedule schedule;
  codegen::choose_vector(fusion, kH200, options, static_cast<int>(fusion.axes.size()) - 1, schedule);
  return schedule;
}

/// out[i, j] = x[...] with the given address.
Fusion copy(std::int64_t rows, std::int64_t columns, ir::Sizes coeff, std::int64_t offset, DType dtype = DType::Float32) {
  HandFusion f({{rows}, {columns}});
  f.store(f.load(std::move(coeff), offset, dtype), {columns, 1}, dtype);
  return f.build();
}

}  // namespace

TEST_CASE("16 bytes of the widest type along the innermost axis", "[vectorize]") {
  CHECK(vectorise(copy(64, 1024, {1024, 1}, 0)).vector == 4);
  CHECK(vectorise(copy(64, 1024, {1024, 1}, 0, DType::BFloat16)).vector == 8);
  CHECK(vectorise(copy(64, 1024, {1024, 1}, 0, DType::Float64)).vector == 2);
  HandFusion mixed({{64}, {1024}});
  mixed.store(mixed.load({1024, 1}, 0, DType::BFloat16), {1024, 1}, DType::Float32);
  CHECK(vectorise(mixed.build()).vector == 4);
}

TEST_CASE("the size of the axis must divide", "[vectorize]") {
  CHECK(vectorise(copy(64, 1022, {1022, 1}, 0)).vector == 2);
  CHECK(vectorise(copy(64, 1023, {1023, 1}, 0)).vector == 1);
}

TEST_CASE("a row stride or an offset off the vector leaves that tensor scalar", "[vectorize]") {
  const Schedule stride = vectorise(copy(64, 1024, {1025, 1}, 0));
  CHECK(stride.vector == 4);
  CHECK(stride.vector_input == std::vector<bool>{false});
  CHECK(stride.vector_output == std::vector<bool>{true});
  CHECK(vectorise(copy(64, 1024, {2048, 1}, 1)).vector_input == std::vector<bool>{false});
  CHECK(vectorise(copy(64, 1024, {2048, 1}, 8)).vector_input == std::vector<bool>{true});
}

TEST_CASE("tensors that all allow half a vector get it", "[vectorize]") {
  HandFusion f({{64}, {1024}});
  const auto a = f.load({1026, 1}), b = f.load({1026, 1}), c = f.load({1026, 1});
  f.store(f.compute({a, b, c}), {1026, 1});
  const Schedule schedule = vectorise(f.build());
  CHECK(schedule.vector == 2);
  CHECK(schedule.vector_input == std::vector<bool>{true, true, true});
}

TEST_CASE("a broadcast tensor is scalar and does not limit the others", "[vectorize]") {
  HandFusion f({{64}, {1024}});
  f.store(f.compute({f.load({1024, 1}), f.load({1, 0})}), {1024, 1});
  const Schedule schedule = vectorise(f.build());
  CHECK(schedule.vector == 4);
  CHECK(schedule.vector_input == std::vector<bool>{true, false});
}

TEST_CASE("the alignment of a pointer limits its vector", "[vectorize]") {
  ScheduleOptions options;
  options.input_alignment = {4};
  CHECK(vectorise(copy(64, 1024, {1024, 1}, 0), options).vector_input == std::vector<bool>{false});
  options.input_alignment = {16};
  CHECK(vectorise(copy(64, 1024, {1024, 1}, 0), options).vector_input == std::vector<bool>{true});
}

TEST_CASE("a bound inside a vector forbids it, one between vectors does not", "[vectorize]") {
  for (const std::int64_t edge : {4, 5}) {
    HandFusion f({{64}, {1024}});
    const auto x = f.load({1024, 1}, -edge);
    f.expr(x).bounds = {{{{0, 1}, 0}, edge, 1024}};
    f.store(x, {1024, 1});
    CHECK(vectorise(f.build()).vector == (edge == 4 ? 4 : 1));
  }
}

TEST_CASE("a gathered row may be a vector, a gathered column may not", "[vectorize]") {
  for (const bool row : {true, false}) {
    HandFusion f({{64}, {1024}});
    const auto index = f.load(row ? ir::Sizes{1, 0} : ir::Sizes{0, 1}, 0, DType::Int64);
    const auto x = f.load({0, 1});
    f.expr(x).indirect = {{index, 1024, 50}};
    f.store(x, {1024, 1});
    CHECK(vectorise(f.build()).vector_input[1] == row);
  }
}

TEST_CASE("an index is 32 bits wide while every address fits", "[vectorize]") {
  CHECK(codegen::choose_index_bits(copy(64, 1024, {1024, 1}, 0)) == 32);
  CHECK(codegen::choose_index_bits(copy(1 << 16, 1 << 16, {1 << 16, 1}, 0)) == 64);
  // Few elements, far apart.
  CHECK(codegen::choose_index_bits(copy(4, 1024, {std::int64_t{1} << 30, 1}, 0)) == 64);
  CHECK(codegen::choose_index_bits(copy(4, 1024, {-(std::int64_t{1} << 30), 1}, std::int64_t{3} << 30)) == 64);
  HandFusion f({{64}, {1024}});
  const auto index = f.load({1, 0}, 0, DType::Int64);
  const auto x = f.load({0, 1});
  f.expr(x).indirect = {{index, 1024, 10'000'000}};
  f.store(x, {1024, 1});
  CHECK(codegen::choose_index_bits(f.build()) == 64);
}
