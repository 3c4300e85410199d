// Elements of a short axis side by side in one tensor and far apart in another (an image's channels last and first): a thread takes
// the whole short axis and a vector along the long one beside it, so that every access is of packs, and turns them in registers.

#include <algorithm>
#include <vector>

#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kLongestShort = 8;
constexpr std::int64_t kTensorBytes = 64, kThreadBytes = 192;  // of a tensor, and of all, in the registers of a thread
constexpr int kThreads = 128;

struct Axes {
  int at_short = -1, at_long = -1;
};

enum class Layout : std::uint8_t {
  Other,        // element by element
  Planar,       // contiguous along the long axis
  Interleaved,  // the short axis is innermost, the long one around it
};

Layout layout_of(const Fusion& fusion, const Affine& form, Axes axes) {
  const std::int64_t inner = coefficient(form, axes.at_short), outer = coefficient(form, axes.at_long);
  if (outer == 1) return Layout::Planar;
  return inner == 1 && outer == fusion.axes[static_cast<std::size_t>(axes.at_short)].size ? Layout::Interleaved : Layout::Other;
}

/// Packs of `vector` elements begin at multiples of it. Interleaved, a step of `vector` along the long axis is a multiple of it.
bool aligned(const Fusion& fusion, Affine form, Axes axes, Layout layout, std::int64_t vector) {
  if (layout == Layout::Planar) return aligned_form(fusion, form, axes.at_long, vector);
  form.coeff[static_cast<std::size_t>(axes.at_long)] = 0;
  return aligned_form(fusion, form, axes.at_short, vector);
}

/// Which tensors are accessed in packs along these axes, and how.
struct Accesses {
  std::vector<bool> inputs, outputs;
  std::int64_t bytes = 0;  // of the packs, an element of the space
  int planar = 0, interleaved = 0;

  void add(Layout layout, DType dtype) {
    ++(layout == Layout::Planar ? planar : interleaved);
    bytes += ir::itemsize(dtype);
  }
};

Accesses accesses(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, Axes axes, std::int64_t vector) {
  Accesses found;
  found.inputs.assign(fusion.inputs.size(), false);
  found.outputs.assign(fusion.outputs.size(), false);
  const std::vector<int> loads = loads_by_input(fusion);
  const std::int64_t across = fusion.axes[static_cast<std::size_t>(axes.at_short)].size;
  const auto fits = [&](const Affine& form, DType dtype) {
    const Layout layout = layout_of(fusion, form, axes);
    const std::int64_t bytes = vector * ir::itemsize(dtype);
    return layout != Layout::Other && bytes <= arch.vector_bytes && bytes * across <= kTensorBytes && aligned(fusion, form, axes, layout, vector);
  };
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Load || loads[expr.input] != 1 || !expr.bounds.empty() || !expr.indirect.empty()) continue;
    const FusionInput& input = fusion.inputs[expr.input];
    if (input.scalar || !fits(expr.form, input.meta.dtype) || !pointer_allows(fusion, arch, options, expr.input, vector)) continue;
    found.inputs[expr.input] = true;
    found.add(layout_of(fusion, expr.form, axes), input.meta.dtype);
  }
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o) {
    const FusionOutput& output = fusion.outputs[o];
    if (!output.bounds.empty() || !fits(output.form, output.meta.dtype)) continue;
    found.outputs[o] = true;
    found.add(layout_of(fusion, output.form, axes), output.meta.dtype);
  }
  return found;
}

/// The schedule along the axes that most bytes move in packs along; nullopt where no pair of axes turns anything.
std::optional<Schedule> find(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  std::optional<Schedule> best;
  std::int64_t best_bytes = 0;
  const std::int64_t count = iteration_count(fusion);
  const int axes = static_cast<int>(fusion.axes.size());
  for (int at_short = 0; at_short < axes; ++at_short) {
    const std::int64_t across = fusion.axes[static_cast<std::size_t>(at_short)].size;
    if (across < 2 || across > kLongestShort) continue;
    for (int at_long = 0; at_long < axes; ++at_long) {
      if (at_long == at_short) continue;
      for (std::int64_t vector = arch.vector_bytes; vector > 1; vector /= 2) {
        const bool busy = count / (across * vector) >= static_cast<std::int64_t>(arch.sm_count) * kThreads;
        if (!busy || fusion.axes[static_cast<std::size_t>(at_long)].size % vector != 0) continue;
        const Accesses found = accesses(fusion, arch, options, {at_short, at_long}, vector);
        const bool all = std::find(found.outputs.begin(), found.outputs.end(), false) == found.outputs.end();
        if (!all || found.planar == 0 || found.interleaved == 0 || found.bytes <= best_bytes || found.bytes * vector * across > kThreadBytes) continue;
        best_bytes = found.bytes;
        best.emplace();
        best->kind = ScheduleKind::Interleave;
        best->vector = static_cast<int>(vector);
        best->short_axis = at_short, best->long_axis = at_long;
        best->vector_input = found.inputs, best->vector_output = found.outputs;
      }
    }
  }
  return best;
}

std::optional<partitioner::Reason> refuses(const Fusion& fusion, const ArchInfo& arch) {
  if (arch.target == Target::Host) return no_schedule("the host's compiler turns short axes itself");
  if (has_reduce(fusion)) return no_schedule("has a reduction");
  if (auto reason = refuse_any(fusion)) return reason;
  if (!find(fusion, arch, {})) return no_schedule("no short axis lies inside a long one in one tensor and outside in another");
  return std::nullopt;
}

Schedule plan(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  std::optional<Schedule> found = find(fusion, arch, options);
  Schedule schedule = found ? *found : *find(fusion, arch, {});
  // An input at an unaligned address is read element by element.
  for (std::size_t i = 0; i < fusion.inputs.size(); ++i) schedule.vector_input[i] = schedule.vector_input[i] && pointer_allows(fusion, arch, options, i, schedule.vector);
  schedule.index_bits = choose_index_bits(fusion);
  schedule.threads = kThreads;
  return schedule;
}

}  // namespace

Scheduler interleave_scheduler() { return {"interleave", refuses, plan}; }

}  // namespace fxfuser::codegen
