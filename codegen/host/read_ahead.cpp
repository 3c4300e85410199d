#include "codegen/host/read_ahead.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kLongRow = 256;      // elements: shorter rows are there before they are asked for
constexpr std::int64_t kNear = 256 * 1024;  // bytes of a row that a later pass finds in the second-level cache, the next one beside it
constexpr std::int64_t kAhead = 4096;       // bytes along a row: a page
constexpr std::int64_t kRows = 8192;        // bytes in rows of their own, each at another page
constexpr std::int64_t kLine = 64;

/// Asks for all lines of `bytes` bytes from an element on.
std::string lines(const std::string& pointer, const std::string& address, std::int64_t bytes, int write) {
  return fmt::format("for (int line = 0; line < {}; ++line) __builtin_prefetch((const char*)({} + {}) + line * {}, {});", std::max<std::int64_t>(bytes / kLine, 1), pointer, address, kLine, write);
}

}  // namespace

ReadAhead::ReadAhead(HostWriter& writer, bool split, std::uint32_t pass)
    : w_(writer), reduced_(writer.reduced_axes()), kept_(writer.kept_axes()), split_(split), pass_(pass) {}

std::string ReadAhead::text(const std::vector<std::uint32_t>& ids, const std::string& j, int lanes) const {
  if (reduced_.empty() || w_.fusion.axes[reduced_.back()].size < kLongRow) return "";
  const auto& folds = w_.passes.accumulators;
  const bool last = std::none_of(folds.begin(), folds.end(), [&](const Accumulator& state) { return state.pass > pass_; });
  const std::vector<std::size_t> written = full_outputs();
  std::vector<std::string> out;
  if (written.empty() ? last : pass_ == 0) {
    for (std::uint32_t id : ids) read(id, j, lanes, out);
  } else if (last && pass_ > 0) {
    for (std::size_t output : written) write(output, j, lanes, out);
  }
  return fmt::format("{}", fmt::join(out, " "));
}

std::vector<std::size_t> ReadAhead::full_outputs() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) {
    if (is_full_output(w_.fusion, w_.passes, i)) out.push_back(i);
  }
  return out;
}

void ReadAhead::read(std::uint32_t id, const std::string& j, int lanes, std::vector<std::string>& out) const {
  const Expr& load = w_.fusion.body[id];
  if (load.kind != ExprKind::Load || !load.indirect.empty() || !load.bounds.empty() || load.form.coeff[reduced_.back()] != 1) return;
  const int next = next_axis(load);
  if (next < 0 && pass_ > 0) return;
  const std::int64_t bytes = ir::itemsize(w_.fusion.inputs[load.input].meta.dtype);
  const std::int64_t rows = reduced_.size() > 1 ? std::clamp<std::int64_t>(kRows / (w_.fusion.axes[reduced_.back()].size * bytes), 1, 16) : 1;
  const std::string address = w_.params.affine(load.form, fmt::format("e{}", id), [&](std::size_t axis) {
    if (axis == reduced_.back()) return next >= 0 ? j : fmt::format("({} + {})", j, kAhead / bytes);
    return static_cast<int>(axis) == next ? fmt::format("({} + {})", w_.index_name(axis), rows) : w_.index_name(axis);
  });
  out.push_back(lines(w_.params.input(load.input), address, lanes * bytes, 0));
}

void ReadAhead::write(std::size_t output, const std::string& j, int lanes, std::vector<std::string>& out) const {
  const FusionOutput& target = w_.fusion.outputs[output];
  const std::int64_t bytes = ir::itemsize(target.meta.dtype);
  if (!target.bounds.empty() || target.form.coeff[reduced_.back()] != 1 || w_.fusion.reduced_numel() * bytes > kNear) return;
  const std::string name = w_.params.output(output);
  const std::string address = w_.params.affine(target.form, name, [&](std::size_t axis) { return axis == reduced_.back() ? j : w_.index_name(axis); });
  out.push_back(lines(name, address, lanes * bytes, 1));
}

/// The axis along which the next row of a load lies, or -1: what is next lies further along the row.
int ReadAhead::next_axis(const Expr& load) const {
  int axis = -1;
  const std::int64_t row_bytes = w_.fusion.reduced_numel() * ir::itemsize(w_.fusion.inputs[load.input].meta.dtype);
  if (reduced_.size() > 1 && !split_) {
    axis = static_cast<int>(reduced_[reduced_.size() - 2]);
  } else if (pass_ > 0 && row_bytes <= kNear && !kept_.empty()) {
    axis = static_cast<int>(kept_.back());
  }
  return axis >= 0 && load.form.coeff[static_cast<std::size_t>(axis)] == 0 ? -1 : axis;
}

}  // namespace fxfuser::codegen
