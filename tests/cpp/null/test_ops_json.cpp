#include "partitioner/ir/op_table.h"
#include "tests/cpp/catch.h"

using namespace fxfuser::ir;

TEST_CASE("the embedded table loads and answers by target", "[ops_json]") {
  const OpTable table = OpTable::from_json(embedded_ops_json(), "configs/ops.json");
  CHECK(table.rows().size() >= 250);
  const auto [row, form] = table.find_target("aten.sum.dim_IntList");
  REQUIRE(row != nullptr);
  CHECK(row->op == "sum");
  CHECK(form->names == std::vector<std::string>{"self", "dims", "keepdim", "dtype"});
  CHECK(table.find_target("aten.digamma.default").first == nullptr);
  for (const char* primitive : {"permute", "reshape", "expand", "slice", "flip", "cat", "pad", "index_read", "full", "index", "cast"}) {
    CHECK(table.find(primitive) != nullptr);
  }
}
