#include "executor/row_overload.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); }

/// True when `taker` takes or fixes alike every parameter that `form` gives.
bool takes_all(const ir::OpTarget& taker, const ir::OpTarget& form) {
  return std::all_of(form.names.begin(), form.names.end(), [&](const std::string& name) { return name.empty() || has(taker.names, name); }) &&
         std::all_of(form.fixed.begin(), form.fixed.end(), [&](const auto& fixed) {
           const auto same = taker.fixed.find(fixed.first);
           return has(taker.names, fixed.first) || (same != taker.fixed.end() && same->second == fixed.second);
         });
}

const ir::OpTarget* first_taker(const ir::OpRow& row, const ir::OpTarget& form) {
  for (const ir::OpTarget& target : row.targets) {
    if (target.target.starts_with("aten.") && takes_all(target, form)) return &target;
  }
  return nullptr;
}

/// "aten.add.Tensor" as the dispatcher spells it; nullopt where that is no name of an overload.
std::optional<c10::OperatorName> operator_name(const std::string& target) {
  const std::size_t first = target.find('.'), last = target.rfind('.');
  if (first == std::string::npos || last <= first) return std::nullopt;
  const std::string overload = target.substr(last + 1);
  return c10::OperatorName(target.substr(0, first) + "::" + target.substr(first + 1, last - first - 1), overload == "default" ? "" : overload);
}

/// The overloads of "aten::add", in order, for messages.
std::string overloads_of(const std::string& op) {
  std::set<std::string> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name == op) found.insert(name.overload_name.empty() ? "default" : name.overload_name);
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace

c10::OperatorHandle find_operator(const std::string& target) {
  const auto name = operator_name(target);
  FXF_CHECK(name.has_value(), Runtime, "{} is no dispatcher operator", target);
  auto handle = c10::Dispatcher::singleton().findSchema(*name);
  FXF_CHECK(handle.has_value(), Runtime, "the dispatcher has no {}", target);
  return *handle;
}

bool is_operator(const std::string& word) {
  if (const auto name = operator_name(word); name && c10::Dispatcher::singleton().findSchema(*name).has_value()) return true;
  const std::size_t dot = word.find('.');
  return dot != std::string::npos && !overloads_of(word.substr(0, dot) + "::" + word.substr(dot + 1)).empty();
}

void check_fallbacks(const ir::OpTable& table) {
  for (const auto& row : table.rows()) {
    if (row->fallback.empty()) continue;
    const auto name = operator_name(row->fallback);
    FXF_CHECK(name.has_value(), Value, "row \"{}\": fallback \"{}\" is not namespace.op.overload, as in aten.relu.default", row->op, row->fallback);
    if (c10::Dispatcher::singleton().findSchema(*name).has_value()) continue;
    const std::string known = overloads_of(name->name);
    throw_error(ErrorKind::Value, fmt::format("row \"{}\": the dispatcher has no fallback \"{}\"; {}", row->op, row->fallback,
                                              known.empty() ? "it has no op of that name" : "overloads of that op are " + known));
  }
}

std::optional<RowOverload> row_overload(const ir::OpRow& row, const ir::OpTarget& form) {
  if (form.target.starts_with("aten.")) return std::nullopt;
  const ir::OpTarget* taker = nullptr;
  if (row.fallback.empty()) {
    taker = first_taker(row, form);
    if (taker == nullptr) return std::nullopt;
  } else {
    for (const ir::OpTarget& target : row.targets) {
      if (target.target == row.fallback) taker = &target;
    }
  }
  // A fallback that is no target of the row takes the row's parameters by position.
  const std::string& target = taker == nullptr ? row.fallback : taker->target;
  RowOverload out{find_operator(target), target, taker == nullptr ? row.params : taker->names};
  const auto& arguments = out.op.schema().arguments();
  out.params.resize(arguments.size());
  // What the target does not give keeps the overload's own default.
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool given = has(form.names, out.params[i]) || form.fixed.contains(out.params[i]);
    if (taker == nullptr && !given && arguments[i].default_value()) out.params[i].clear();
  }
  return out;
}

}  // namespace fxfuser::executor
