#include "codegen/arch.h"
#include "tests/cpp/catch.h"

using fxfuser::codegen::ArchInfo;
using fxfuser::codegen::Target;

TEST_CASE("the H200 has its own entry", "[arch]") {
  const ArchInfo arch = ArchInfo::h200();
  CHECK(arch.target == Target::Cuda);
  CHECK(arch.sm == 90);
  CHECK(arch.sm_count == 132);
  CHECK(arch.shared_per_block == 227 * 1024);
  CHECK(arch.bytes_in_flight == 48 * 1024);
  CHECK(arch.max_cluster == 16);
}

TEST_CASE("a device newer than the families takes the newest one below it", "[arch]") {
  CHECK(ArchInfo::generic(87).max_threads_per_sm == ArchInfo::generic(86).max_threads_per_sm);
  CHECK(ArchInfo::generic(103).shared_per_block == ArchInfo::generic(100).shared_per_block);
  CHECK(ArchInfo::generic(103).sm == 103);
  CHECK(ArchInfo::generic(121).max_threads_per_sm == 1536);
  CHECK(ArchInfo::generic(60).max_cluster == 1);
}

TEST_CASE("every family can hold a block of its own", "[arch]") {
  for (const int sm : {75, 80, 86, 89, 90, 100, 120}) {
    const ArchInfo arch = ArchInfo::generic(sm);
    CAPTURE(sm);
    CHECK(arch.shared_per_block <= arch.shared_per_sm);
    CHECK(arch.max_threads_per_sm >= 1024);
    CHECK(arch.vector_bytes >= 16);
  }
}

TEST_CASE("a host has at least one thread", "[arch]") {
  CHECK(ArchInfo::host(0).sm_count == 1);
  CHECK(ArchInfo::host(8).sm_count == 8);
  CHECK(ArchInfo::host(8).target == Target::Host);
}
