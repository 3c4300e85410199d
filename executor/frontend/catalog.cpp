#include "executor/frontend/catalog.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "executor/frontend/op_list.h"
#include "executor/frontend/overloads.h"
#include "executor/frontend/python_text.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return out;
}

ir::Attr default_value(std::string_view text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  for (const auto& [name, dtype] : data_types()) {
    if (name == text) return dtype;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  FXF_ASSERT(error == std::errc() && end == text.data() + text.size(), "a default that is no number: {}", text);
  return number;
}

SignatureParam read_param(std::string_view text) {
  SignatureParam out;
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) out.fallback = default_value(text.substr(equals + 1));
  const std::vector<std::string> names = split(text.substr(0, equals), "|");
  out.name = names.at(0);
  if (names.size() > 1) out.alias = names[1];
  out.row = out.name == "arg" ? "self" : out.name;
  return out;
}

std::vector<DTypeRule> read_dtypes(std::string_view text) {
  std::vector<DTypeRule> out;
  for (const std::string& word : split(text, " ")) {
    out.push_back(word == "same" ? DTypeRule::Same : word == "param" ? DTypeRule::Param : word == "int" ? DTypeRule::Int : word == "bool" ? DTypeRule::Bool : DTypeRule::Unknown);
  }
  return out;
}

std::string expression_text(const ir::Expr& expr) {
  std::string out;
  for (const ir::ExprPiece& piece : expr) out += piece.text;
  return out;
}

std::string row_doc(const ir::OpRow& row) {
  if (!row.expr_host.empty()) return fmt::format("Each element: {}.", expression_text(row.expr_host));
  switch (row.kind) {
    case ir::OpKind::Reduction: return "A reduction over dims.";
    case ir::OpKind::View: return "A view: no memory is touched.";
    case ir::OpKind::Indexed:
    case ir::OpKind::Position: return "Reads chosen by position or index.";
    default: return "";
  }
}

std::string whole_doc(const OpSignature& op, std::string_view text) {
  std::string out = op.text().substr(std::string_view("fd.ops.").size()) + "\n--\n\n";
  if (!text.empty()) out += std::string(text) + "\n\n";
  std::string targets;
  for (const OpOverload& overload : op.overloads) targets += (targets.empty() ? "" : ", ") + overload.target;
  if (op.row != nullptr) out += fmt::format("Row '{}' of the op table: generated kernels compute it.", op.row->op);
  else if (op.composite != nullptr) out += "Made of rows of the op table.";
  else out += "No row of the op table: an ATen step.";
  if (!targets.empty()) out += " ATen: " + targets + ".";
  if (op.widens) out += "\n16-bit floats enter as Float and stay so until they are cast back.";
  if (!op.scalar.empty()) out += "\nScalars alone give a Scalar.";
  return out;
}

void add_overloads(const ir::OpRow& row, OpSignature& out) {
  for (const ir::OpTarget& target : row.targets) {
    // prims and nvprims mean the same and are registered by Python only.
    if (target.target.starts_with("prims.") || target.target.starts_with("nvprims.")) continue;
    if (auto overload = read_overload(target.target, &target)) out.overloads.push_back(std::move(*overload));
  }
}

void add_scalar_form(OpSignature& out) {
  for (const ScalarOp& scalar : scalar_ops()) {
    if (scalar.op != out.name) continue;
    out.scalar = scalar.target;
    out.scalar_arity = scalar.arity;
  }
}

}  // namespace

std::unique_ptr<OpSignature> Catalog::from_list(std::string_view name) const {
  const auto& list = listed_ops();
  const auto found = std::find_if(list.begin(), list.end(), [&](const ListedOp& op) { return op.name == name; });
  if (found == list.end()) return nullptr;
  auto out = std::make_unique<OpSignature>();
  out->name = name;
  for (const std::string& text : split(found->signature, ", ")) out->params.push_back(read_param(text));
  for (const std::string& word : split(found->mapping, " ")) {
    const std::vector<std::string> sides = split(word, "=");
    const auto param = std::find_if(out->params.begin(), out->params.end(), [&](const SignatureParam& item) { return item.name == sides.at(1); });
    FXF_ASSERT(param != out->params.end(), "{} maps {}, which it has not", name, sides.at(1));
    param->row = sides[0];
  }
  out->rank = found->rank;
  out->length_of = found->length_of;
  out->dtypes = read_dtypes(found->dtypes);
  out->widens = found->widens;
  out->check = found->check;
  out->composite = found->composite;
  out->composite_outputs = found->outputs;
  out->returns_list = found->composite != nullptr && found->outputs == 0;
  const std::string target(found->target);
  if (target.starts_with("aten.")) {
    const auto [row, form] = table_.find_target(target);
    out->row = row;
    if (auto overload = read_overload(target, form)) out->overloads.push_back(std::move(*overload));
  } else if (!target.empty()) {
    out->row = table_.find(target);
    FXF_ASSERT(out->row != nullptr, "{} is listed with row {}, which is not in the table", name, target);
    if (out->composite == nullptr) add_overloads(*out->row, *out);
  }
  out->infer_as = found->infer_as.empty() ? out->row : table_.find(found->infer_as);
  add_scalar_form(*out);
  out->doc = whole_doc(*out, found->doc);
  return out;
}

std::unique_ptr<OpSignature> Catalog::from_row(std::string_view name) const {
  const ir::OpRow* row = table_.find(name);
  if (row == nullptr) return nullptr;
  auto out = std::make_unique<OpSignature>();
  out->name = name;
  out->row = row;
  add_overloads(*row, *out);
  if (out->overloads.empty()) return nullptr;
  // The parameters that some overload takes, in the row's order; one may be left out when the row, a schema or an overload says what it is then.
  const std::vector<std::string>& params = row->params;
  for (const std::string& name_of : params) {
    SignatureParam param;
    param.row = name_of;
    param.name = name_of == "self" ? "arg" : name_of;
    bool taken = false;
    for (const OpOverload& overload : out->overloads) {
      const auto item = std::find_if(overload.params.begin(), overload.params.end(), [&](const OverloadParam& one) { return one.param == name_of; });
      if (item == overload.params.end()) {
        if (!param.fallback) param.fallback = ir::Attr();  // an overload that does without it
        continue;
      }
      taken = true;
      if (!param.fallback && item->fallback) param.fallback = item->fallback;
      if (!param.fallback && item->optional) param.fallback = ir::Attr();
    }
    if (const auto fallback = row->defaults.find(name_of); fallback != row->defaults.end()) param.fallback = fallback->second;
    if (taken) out->params.push_back(std::move(param));
  }
  const bool infers = row->kind == ir::OpKind::Pointwise || row->kind == ir::OpKind::Cast || row->kind == ir::OpKind::Reduction;
  out->rank = infers ? RankRule::Infer : row->kind == ir::OpKind::Composite && row->strides == "iterator" ? RankRule::Broadcast : RankRule::Unknown;
  out->infer_as = infers ? row : nullptr;
  out->widens = row->kind == ir::OpKind::Pointwise;
  add_scalar_form(*out);
  out->doc = whole_doc(*out, row_doc(*row));
  return out;
}

std::unique_ptr<OpSignature> Catalog::from_aten(std::string_view name) const {
  const std::string target = aten_target(std::string(name));
  if (target.empty()) return nullptr;
  auto out = std::make_unique<OpSignature>();
  out->name = name;
  out->params = schema_params(target);
  out->overloads.push_back(*read_overload(target, nullptr));
  add_scalar_form(*out);
  out->doc = whole_doc(*out, "");
  return out;
}

const OpSignature* Catalog::find(std::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = ops_.find(name); found != ops_.end()) return found->second.get();
  std::unique_ptr<OpSignature> made = from_list(name);
  if (made == nullptr) made = from_row(name);
  if (made == nullptr) made = from_aten(name);
  if (made == nullptr) return nullptr;  // a row may come
  return ops_.emplace(std::string(name), std::move(made)).first->second.get();
}

const OpSignature& Catalog::row(std::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = rows_.find(name); found != rows_.end()) return *found->second;
  std::unique_ptr<OpSignature> made = from_row(name);
  if (made == nullptr) made = from_aten(name);
  FXF_ASSERT(made != nullptr, "there is no row {}", name);
  return *rows_.emplace(std::string(name), std::move(made)).first->second;
}

std::vector<std::string> Catalog::names() const {
  std::set<std::string> out;
  for (const ListedOp& op : listed_ops()) out.emplace(op.name);
  for (const auto& row : table_.rows()) {
    if (find(row->op) != nullptr) out.insert(row->op);
  }
  return {out.begin(), out.end()};
}

}  // namespace fxfuser::frontend
