#include "partitioner/reason.h"
#include "tests/cpp/catch.h"

using namespace fxfuser::partitioner;

TEST_CASE("a reason prints its code and the fact behind it") {
  CHECK(to_string(Reason{ReasonCode::DType, "int8 -> complex64"}) == "dtype: int8 -> complex64");
  CHECK(to_string(Reason{ReasonCode::Empty, ""}) == "empty");
  CHECK_FALSE(Support::no(ReasonCode::NoRow, "aten.digamma").ok());
  CHECK(Support::yes().ok());
}
