#include "codegen/cuda/pack_ring.h"

namespace fxfuser::codegen {
namespace {

std::int64_t pack_bytes(const CudaWriter& w, std::uint32_t id) { return ir::itemsize(w.fusion.inputs[w.fusion.body[id].input].meta.dtype) * w.schedule.vector; }

/// Place of a thread's pack `k` in a slot: the packs of neighbouring threads are neighbours.
std::string place(const CudaWriter& w, const std::string& slot) {
  return fmt::format("(({} * {} + k) * {} + fxf_thread())", slot, w.schedule.vectors_per_thread, w.schedule.threads);
}

}  // namespace

std::int64_t PackRing::shared_bytes() const {
  std::int64_t bytes = 0;
  for (std::uint32_t id : ids_) bytes += pack_bytes(w_, id);
  return any() ? bytes * w_.schedule.stages * w_.schedule.vectors_per_thread * w_.schedule.threads : 0;
}

void PackRing::begin(const Round& round) {
  const Schedule& s = w_.schedule;
  w_.body.line("FXF_DYNAMIC(ring);");
  std::int64_t offset = 0;
  for (std::uint32_t id : ids_) {
    w_.body.linef("char* const ring{} = ring + {};", id, offset);
    offset += pack_bytes(w_, id) * s.stages * s.vectors_per_thread * s.threads;
  }
  w_.body.line("FXF_UNROLL");
  w_.body.begin(fmt::format("for (int s = 0; s < {}; ++s)", s.stages - 1));
  fetch(round, fmt::format("fxf_block() + s * {}", w_.params.number("slabs", s.slabs)), "s");
  w_.body.end();
}

void PackRing::advance(const Round& round) {
  const int ahead = w_.schedule.stages - 1;
  fetch(round, fmt::format("round + {} * {}", ahead, w_.params.number("slabs", w_.schedule.slabs)), fmt::format("(turn + {}) % {}", ahead, w_.schedule.stages));
  w_.body.linef("fxf_await_fetches<{}>();", ahead);
}

void PackRing::fetch(const Round& round, const std::string& which, const std::string& slot) {
  w_.body.begin("");
  w_.body.linef("const {} coming = {};", w_.index(), which);
  w_.body.linef("const int slot = {};", slot);
  round("coming", [&] {
    for (std::uint32_t id : ids_) {
      w_.body.linef("fxf_fetch<{}>(ring{} + {} * {}, {} + {});", w_.pack_type(id), id, place(w_, "slot"), pack_bytes(w_, id), w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
    }
  });
  w_.body.line("fxf_commit_fetches();");
  w_.body.end();
}

void PackRing::take(const std::function<void()>& begin_packs, const std::function<void()>& end_packs) {
  for (std::uint32_t id : ids_) w_.body.linef("{} x{}[{}];", w_.pack_type(id), id, w_.schedule.vectors_per_thread);
  begin_packs();
  for (std::uint32_t id : ids_) {
    w_.body.linef("x{0}[k] = fxf_fetched<{1}>(ring{0} + {2} * {3});", id, w_.pack_type(id), place(w_, fmt::format("(turn % {})", w_.schedule.stages)), pack_bytes(w_, id));
  }
  end_packs();
}

}  // namespace fxfuser::codegen
