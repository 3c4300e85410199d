#include "codegen/cuda/pack_ring.h"

#include <algorithm>

#include "codegen/shifted_rows.h"

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kAligned = 16;

std::int64_t pack_bytes(const CudaWriter& w, std::uint32_t id) { return ir::itemsize(w.fusion.inputs[w.fusion.body[id].input].meta.dtype) * w.schedule.vector; }

}  // namespace

void PackRing::set(std::vector<std::uint32_t> ids, int ahead) {
  ids_ = std::move(ids);
  ahead_ = ahead;
}

bool PackRing::has(std::uint32_t id) const { return any() && std::find(ids_.begin(), ids_.end(), id) != ids_.end(); }

/// A place for each pack of each thread; of one slot, for each pack that the block has.
std::int64_t PackRing::slot_bytes(std::uint32_t id) const {
  const Schedule& s = w_.schedule;
  const std::int64_t packs = s.refills() ? packs_of_peer(s, w_.fusion.reduced_numel()) : static_cast<std::int64_t>(s.vectors_per_thread) * s.threads;
  return (packs * pack_bytes(w_, id) + kAligned - 1) / kAligned * kAligned;
}

std::int64_t PackRing::shared_bytes() const {
  std::int64_t bytes = 0;
  for (std::uint32_t id : ids_) bytes += slot_bytes(id);
  return any() ? bytes * w_.schedule.stages : 0;
}

void PackRing::begin(const Turn& turn) {
  w_.body.line("FXF_DYNAMIC(ring);");
  std::int64_t offset = 0;
  for (std::uint32_t id : ids_) {
    const bool by_size = w_.schedule.refills() && offset > 0;
    w_.body.linef("char* const ring{} = ring + {};", id, by_size ? w_.params.number(fmt::format("ring_offset{}", id), offset) : fmt::to_string(offset));
    offset += slot_bytes(id) * w_.schedule.stages;
  }
  w_.body.line("FXF_UNROLL");
  w_.body.begin(fmt::format("for (int s = 0; s < {}; ++s)", ahead_));
  fetch(turn, "s");
  w_.body.end();
}

void PackRing::advance(const Turn& turn) {
  if (w_.schedule.refills()) {
    w_.body.line("fxf_await_fetches<0>();");
    return;
  }
  fetch(turn, fmt::format("(turn + {})", ahead_));
  w_.body.linef("fxf_await_fetches<{}>();", ahead_);
}

void PackRing::fetch(const Turn& turn, const std::string& which) {
  w_.body.begin("");
  if (!w_.schedule.refills()) w_.body.linef("const int slot = {} % {};", which, w_.schedule.stages);
  turn(which, [this] { refill(); });
  w_.body.line("fxf_commit_fetches();");
  w_.body.end();
}

void PackRing::refill() {
  for (std::uint32_t id : ids_) {
    const std::string from = w_.params.input(w_.fusion.body[id].input), address = w_.load_address(id);
    if (w_.schedule.shifted) w_.body.linef("fxf_fetch_within<{}>({}, {}, {}, {});", w_.pack_type(id), place(id, "slot"), from, address, w_.load_end_name(id));
    else w_.body.linef("fxf_fetch<{}>({}, {} + {});", w_.pack_type(id), place(id, "slot"), from, address);
  }
}

std::string PackRing::pack(std::uint32_t id, const std::string& slot) const { return fmt::format("fxf_fetched<{}>({})", w_.pack_type(id), place(id, slot)); }

/// The packs of neighbouring threads are neighbours.
std::string PackRing::place(std::uint32_t id, const std::string& slot) const {
  if (w_.schedule.refills()) return fmt::format("ring{} + (k * {} + fxf_thread()) * {}", id, w_.schedule.threads, pack_bytes(w_, id));
  return fmt::format("ring{} + (({} * {} + k) * {} + fxf_thread()) * {}", id, slot, w_.schedule.vectors_per_thread, w_.schedule.threads, pack_bytes(w_, id));
}

}  // namespace fxfuser::codegen
