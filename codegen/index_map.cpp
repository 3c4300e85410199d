#include "codegen/index_map.h"

#include <algorithm>

#include "codegen/build_fusion.h"

namespace fxfuser::codegen {

Affine constant(std::size_t axes, std::int64_t value) { return {std::vector<std::int64_t>(axes, 0), value}; }

Affine scaled(const Affine& form, std::int64_t factor) {
  Affine out = form;
  for (std::int64_t& coeff : out.coeff) coeff *= factor;
  out.offset *= factor;
  return out;
}

Affine sum(const Affine& a, const Affine& b) {
  Affine out = a;
  for (std::size_t axis = 0; axis < b.coeff.size(); ++axis) out.coeff[axis] += b.coeff[axis];
  out.offset += b.offset;
  return out;
}

bool is_constant(const Affine& form) {
  return std::all_of(form.coeff.begin(), form.coeff.end(), [](std::int64_t coeff) { return coeff == 0; });
}

std::int64_t lowest(const Affine& form, const std::vector<Axis>& axes) {
  std::int64_t value = form.offset;
  for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) value += std::min<std::int64_t>(form.coeff[axis] * (axes[axis].size - 1), 0);
  return value;
}

std::int64_t highest(const Affine& form, const std::vector<Axis>& axes) {
  std::int64_t value = form.offset;
  for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) value += std::max<std::int64_t>(form.coeff[axis] * (axes[axis].size - 1), 0);
  return value;
}

Affine dot(const Map& map, const std::vector<std::int64_t>& weights, std::size_t axes) {
  Affine out = constant(axes, 0);
  for (std::size_t d = 0; d < map.size(); ++d) out = sum(out, scaled(map[d], weights[d]));
  return out;
}

void split_form(Affine& form, std::size_t axis, std::int64_t inner) {
  const std::int64_t coeff = form.coeff[axis];
  form.coeff[axis] = coeff * inner;
  form.coeff.insert(form.coeff.begin() + static_cast<std::ptrdiff_t>(axis) + 1, coeff);
}

namespace {

/// Divides a form by `size`: quotient and remainder as forms, when each axis lies wholly in one of them.
struct Division {
  bool exact = false;
  Affine quotient, remainder;
  std::optional<Split> split;
};

Division divide(const Affine& form, std::int64_t size, const std::vector<Axis>& axes) {
  Division out;
  const std::size_t count = form.coeff.size();
  out.quotient = constant(count, 0);
  out.remainder = constant(count, 0);
  for (std::size_t axis = 0; axis < count; ++axis) {
    const std::int64_t coeff = form.coeff[axis], extent = axes[axis].size;
    if (coeff == 0) continue;
    if (coeff % size == 0) {
      out.quotient.coeff[axis] = coeff / size;
    } else if (coeff > 0 && coeff * (extent - 1) < size) {
      out.remainder.coeff[axis] = coeff;
    } else if (coeff > 0 && coeff < size && size % coeff == 0 && extent % (size / coeff) == 0) {
      out.split = Split{axis, size / coeff};
      return out;
    } else {
      return out;
    }
  }
  std::int64_t rest = form.offset % size;
  if (rest < 0) rest += size;
  out.quotient.offset = (form.offset - rest) / size;
  out.remainder.offset = rest;
  // No carry: the remainder must stay within [0, size) over the whole space.
  out.exact = lowest(out.remainder, axes) >= 0 && highest(out.remainder, axes) < size;
  return out;
}

}  // namespace

Delinearized delinearize(const Affine& linear, const std::vector<std::int64_t>& sizes, const std::vector<Axis>& axes) {
  Map map(sizes.size(), constant(linear.coeff.size(), 0));
  Affine rest = linear;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    const bool outermost = std::all_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(d), [](std::int64_t size) { return size == 1; });
    if (outermost) {
      map[d] = rest;
      rest = constant(linear.coeff.size(), 0);
      break;
    }
    Division division = divide(rest, sizes[d], axes);
    if (division.split) return {std::nullopt, division.split};
    if (!division.exact) return {};
    map[d] = division.remainder;
    rest = division.quotient;
  }
  if (!is_constant(rest)) return {};
  return {map, std::nullopt};
}

namespace {

/// Calls fn on every affine form of the fusion.
template <typename Fn>
void for_each_form(Fusion& fusion, Fn&& fn) {
  for (Expr& expr : fusion.body) {
    if (expr.kind == ExprKind::Load || expr.kind == ExprKind::Index) fn(expr.form);
    for (Bound& bound : expr.bounds) fn(bound.form);
  }
  for (FusionOutput& output : fusion.outputs) {
    fn(output.form);
    for (Bound& bound : output.bounds) fn(bound.form);
  }
}

void remove_axis(Fusion& fusion, std::size_t axis) {
  for_each_form(fusion, [&](Affine& form) { form.coeff.erase(form.coeff.begin() + static_cast<std::ptrdiff_t>(axis)); });
  const std::uint64_t below = (std::uint64_t{1} << axis) - 1;
  for (Expr& expr : fusion.body) expr.over = (expr.over & below) | ((expr.over >> 1) & ~below);
  fusion.axes.erase(fusion.axes.begin() + static_cast<std::ptrdiff_t>(axis));
}

/// The form whose order of coefficients is memory order: the largest store, else the largest load, by how many axes it has.
void collect_votes(Fusion& fusion, std::vector<Affine>& votes) {
  std::vector<std::pair<std::int64_t, Affine>> weighted;
  const auto weight = [&](const Affine& form) {
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) count *= form.coeff[axis] != 0 ? fusion.axes[axis].size : 1;
    return count;
  };
  for (const FusionOutput& output : fusion.outputs) weighted.emplace_back(weight(output.form), output.form);
  const std::size_t stores = weighted.size();
  for (const Expr& expr : fusion.body) {
    if (expr.kind == ExprKind::Load) weighted.emplace_back(weight(expr.form), expr.form);
  }
  // Largest first; a store before a load of the same size.
  std::stable_sort(weighted.begin(), weighted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  (void)stores;
  for (auto& [count, form] : weighted) votes.push_back(form);
}

void order_axes(Fusion& fusion) {
  std::vector<Affine> votes;
  collect_votes(fusion, votes);
  std::vector<std::size_t> order(fusion.axes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    for (const Affine& form : votes) {
      const std::int64_t x = std::abs(form.coeff[a]), y = std::abs(form.coeff[b]);
      if (x == 0 || y == 0) continue;
      if (x != y) return x > y;
    }
    return false;
  });
  const auto permuted = [&](const std::vector<std::int64_t>& old) {
    std::vector<std::int64_t> out(old.size());
    for (std::size_t i = 0; i < order.size(); ++i) out[i] = old[order[i]];
    return out;
  };
  for_each_form(fusion, [&](Affine& form) { form.coeff = permuted(form.coeff); });
  std::vector<Axis> axes(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) axes[i] = fusion.axes[order[i]];
  fusion.axes = axes;
  for (Expr& expr : fusion.body) {
    std::uint64_t over = 0;
    for (std::size_t i = 0; i < order.size(); ++i) over |= ((expr.over >> order[i]) & 1) << i;
    expr.over = over;
  }
}

bool mergeable(Fusion& fusion, std::size_t outer) {
  const std::size_t inner = outer + 1;
  if (fusion.axes[outer].reduced != fusion.axes[inner].reduced) return false;
  for (const Expr& expr : fusion.body) {
    if (((expr.over >> outer) & 1) != ((expr.over >> inner) & 1)) return false;
  }
  bool fits = true;
  for_each_form(fusion, [&](Affine& form) { fits = fits && form.coeff[outer] == form.coeff[inner] * fusion.axes[inner].size; });
  return fits;
}

}  // namespace

void collapse(Fusion& fusion) {
  for (std::size_t axis = fusion.axes.size(); axis-- > 0;) {
    if (fusion.axes[axis].size == 1) remove_axis(fusion, axis);
  }
  order_axes(fusion);
  for (std::size_t outer = fusion.axes.size(); outer-- > 0;) {
    while (outer + 1 < fusion.axes.size() && mergeable(fusion, outer)) {
      fusion.axes[outer + 1].size *= fusion.axes[outer].size;
      remove_axis(fusion, outer);
    }
  }
}

}  // namespace fxfuser::codegen
