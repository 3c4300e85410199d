#include "executor/frontend/definition.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "executor/frontend/python_text.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

void check_sizes(const TensorRecord& record) {
  for (std::size_t d = 0; d < record.sizes.size(); ++d) {
    const std::int64_t size = record.sizes[d];
    if (record.static_sizes) FXF_CHECK(size >= 0, Runtime, "define_tensor: size {} of dim {} is negative", size, d);
    else FXF_CHECK(size == -1 || size == 1, Runtime, "define_tensor: size {} of dim {} is neither broadcast(1) or symbolic(-1)", size, d);
  }
  FXF_CHECK(record.contiguity.size() == record.sizes.size(), Runtime, "define_tensor: {} sizes and {} contiguity flags", record.sizes.size(), record.contiguity.size());
  FXF_CHECK(!record.is_cpu || record.sizes.empty(), Runtime, "CPU non-scalar tensor is not supported!");
  FXF_CHECK(record.dtype != ir::DType::Other, Runtime, "define_tensor: a tensor needs a dtype");
}

ir::Attr converted(const ir::Attr& value, std::optional<ir::DType> dtype) {
  if (!dtype || value.is_none()) return value;
  if (std::holds_alternative<std::complex<double>>(value.v)) {
    FXF_CHECK(ir::is_complex(*dtype), Runtime, "define_constant: a complex number is no {}", data_type_name(*dtype));
    return value;
  }
  if (*dtype == ir::DType::Bool) return value.as_double() != 0;
  if (ir::is_integral(*dtype)) return value.as_int();
  if (ir::is_complex(*dtype)) return std::complex<double>(value.as_double());
  return value.as_double();
}

/// Numbers alone only where the op has a form for numbers, or needs no tensor.
bool takes_kinds(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  if (!is_scalar_call(args, facts) || !op.scalar.empty() || op.composite != nullptr) return true;
  const OpOverload* overload = choose_overload(op, args, facts);
  return overload != nullptr && std::none_of(overload->params.begin(), overload->params.end(), [](const OverloadParam& param) { return param.kind == ParamKind::Tensor && !param.optional; });
}

ir::DType natural_dtype(const ir::Attr& value) {
  if (std::holds_alternative<bool>(value.v)) return ir::DType::Bool;
  if (std::holds_alternative<std::int64_t>(value.v)) return ir::DType::Int64;
  return std::holds_alternative<double>(value.v) ? ir::DType::Float64 : ir::DType::Complex128;
}

}  // namespace

void check_stride_order(const ir::Sizes& order, std::size_t rank) {
  std::vector<bool> seen(rank, false);
  bool good = order.size() == rank;
  for (std::int64_t at : order) {
    good = good && at >= 0 && at < static_cast<std::int64_t>(rank) && !seen[static_cast<std::size_t>(at)];
    if (good) seen[static_cast<std::size_t>(at)] = true;
  }
  FXF_CHECK(good, Runtime, "stride_order [{}] is no permutation of {} dims", fmt::join(order, ", "), rank);
}

std::shared_ptr<FusionDefinition> FusionDefinition::make(const OpSource& ops, std::size_t max_length) {
  return std::shared_ptr<FusionDefinition>(new FusionDefinition(ops, max_length));
}

void FusionDefinition::enter() {
  FXF_CHECK(state_ == State::New, Runtime, "the definition was entered before; make another FusionDefinition");
  state_ = State::Open;
}

std::shared_ptr<Fusion> FusionDefinition::exit(FusionCache& cache) {
  check_open("exit");
  std::shared_ptr<Fusion> fusion = cache.intern(records_);
  state_ = State::Complete;
  return fusion;
}

void FusionDefinition::abandon() {
  state_ = State::Abandoned;
  records_.clear();
}

void FusionDefinition::check_open(std::string_view what) const {
  FXF_CHECK(state_ != State::Complete, Runtime, "{}: Attempting to add to a completed definition!", what);
  FXF_CHECK(state_ == State::Open, Runtime, "{}: the definition is not open; use it inside `with FusionDefinition(...) as fd:`", what);
}

std::vector<Handle> FusionDefinition::add(Record record) {
  FXF_CHECK(records_.size() < max_length_, Runtime,
            "The fusion definition has exceeded {} operations. The max_length for FusionDefinition's might need to be increased if the definition is created as expected.", max_length_);
  std::vector<Handle> out;
  const bool input = std::holds_alternative<TensorRecord>(record) || std::holds_alternative<ScalarRecord>(record);
  for (const Facts& facts : facts_of(record)) {
    out.push_back({shared_from_this(), static_cast<ir::ValueId>(values_.size()), facts.kind});
    values_.push_back(facts);
    is_input_.push_back(input);
  }
  records_.push_back(std::move(record));
  return out;
}

Handle FusionDefinition::define_tensor(TensorRecord record) {
  check_open("define_tensor");
  check_sizes(record);
  if (!record.stride_order.empty()) check_stride_order(record.stride_order, record.sizes.size());
  return add(std::move(record)).at(0);
}

Handle FusionDefinition::define_tensor(std::size_t rank, ir::DType dtype) {
  TensorRecord record;
  record.sizes.assign(rank, -1);
  record.contiguity.assign(rank, 0);
  record.dtype = dtype;
  return define_tensor(std::move(record));
}

Handle FusionDefinition::define_scalar(ir::DType dtype) {
  check_open("define_scalar");
  const bool known = dtype == ir::DType::Float64 || dtype == ir::DType::Int64 || dtype == ir::DType::Bool || dtype == ir::DType::Complex128;
  FXF_CHECK(known, Runtime, "define_scalar: Dtype is not supported: {}; a Scalar is Double, Int, Bool or ComplexDouble", data_type_name(dtype));
  return add(ScalarRecord{dtype}).at(0);
}

Handle FusionDefinition::define_constant(const ir::Attr& value, std::optional<ir::DType> dtype) {
  check_open("define_constant");
  FXF_CHECK(value.is_number(), Type, "define_constant takes a bool, int, float or complex, not {}", python_text(value));
  return add(ConstantRecord{converted(value, dtype), dtype ? *dtype : natural_dtype(value)}).at(0);
}

Handle FusionDefinition::define_null_tensor() {
  check_open("define_null_tensor");
  return add(ConstantRecord{}).at(0);
}

ir::ValueId FusionDefinition::use(const Handle& handle, std::string_view where) const {
  FXF_CHECK(handle.definition != nullptr, Runtime, "{}: a handle that belongs to no definition", where);
  FXF_CHECK(handle.definition.get() == this, Runtime, "{}: {} belongs to another definition", where, value_name(handle.id, handle.kind));
  return handle.id;
}

ir::Attr FusionDefinition::resolve(const Argument& argument, std::string_view where) const {
  if (const auto* attr = std::get_if<ir::Attr>(&argument.v)) return *attr;
  if (const auto* handle = std::get_if<Handle>(&argument.v)) {
    const ir::ValueId id = use(*handle, where);
    return values_[id].kind == ir::ValueKind::Other ? ir::Attr() : ir::Attr(ir::ValueRef{id});
  }
  ir::AttrList list;
  for (const Argument& item : std::get<std::vector<Argument>>(argument.v)) list.push_back(resolve(item, where));
  return list;
}

std::vector<Handle> FusionDefinition::op(std::string_view name, std::vector<Argument> positional, std::map<std::string, Argument> keywords) {
  check_open(fmt::format("fd.ops.{}", name));
  const OpSignature* signature = ops_.find(name);
  FXF_CHECK(signature != nullptr, Value, "fd.ops has no '{}': neither a row of the op table nor an ATen op has that name", name);
  const std::string where = fmt::format("fd.ops.{}", name);
  std::vector<ir::Attr> given;
  for (const Argument& argument : positional) given.push_back(resolve(argument, where));
  std::map<std::string, ir::Attr> named;
  for (const auto& [keyword, argument] : keywords) named.emplace(keyword, resolve(argument, where));
  OpRecord record{std::string(name), bind_arguments(*signature, std::move(given), std::move(named)), {}};
  const FactsOf facts = [&](ir::ValueId id) { return values_[id]; };
  FXF_CHECK(takes_kinds(*signature, record.args, facts), Type, "{} takes no Scalar without a Tensor", where);
  if (signature->check != nullptr) signature->check(record.args, facts);
  record.outputs = result_facts(*signature, record.args, facts);
  if (record.outputs.empty() && !signature->returns_list) {
    std::string text;
    for (const ir::Attr& attr : record.args) text += (text.empty() ? "" : ", ") + python_text(attr, facts);
    throw_error(ErrorKind::Type, fmt::format("{} does not take ({})", signature->text(), text));
  }
  return add(std::move(record));
}

Handle FusionDefinition::call(std::string_view name, std::vector<Argument> positional, std::map<std::string, Argument> keywords) {
  return op(name, std::move(positional), std::move(keywords)).at(0);
}

void FusionDefinition::add_output(const Handle& value, const Handle* alias_input, ir::Sizes stride_order) {
  check_open("add_output");
  OutputRecord record;
  record.value = use(value, "add_output");
  FXF_CHECK(values_[record.value].kind != ir::ValueKind::Other, Runtime, "add_output: a null tensor is no output");
  if (alias_input != nullptr) {
    record.alias = use(*alias_input, "add_output");
    FXF_CHECK(is_input_[record.alias] && alias_input->kind == ir::ValueKind::Tensor, Runtime, "add_output: alias_input {} is no tensor input of the definition",
              value_name(record.alias, alias_input->kind));
    FXF_CHECK(value.kind == ir::ValueKind::Tensor, Runtime, "add_output: only a tensor can be written into an input");
    const auto rank = values_[record.value].rank, wanted = values_[record.alias].rank;
    FXF_CHECK(!rank || rank == wanted, Runtime, "add_output: {} has {} dims, the input {} that it is written into {}", value_name(record.value, value.kind), rank.value_or(0),
              value_name(record.alias, alias_input->kind), wanted.value_or(0));
  }
  if (!stride_order.empty()) check_stride_order(stride_order, static_cast<std::size_t>(rank(value)));
  record.stride_order = std::move(stride_order);
  add(std::move(record));
}

std::int64_t FusionDefinition::rank(const Handle& value) const {
  const auto known = values_.at(use(value, "ndim")).rank;
  FXF_CHECK(known.has_value(), Runtime, "the rank of {} is not known before it runs (no rule says what its op returns)", value_name(value.id, value.kind));
  return *known;
}

std::optional<ir::DType> FusionDefinition::dtype(const Handle& value) const { return values_.at(use(value, "dtype")).dtype; }

}  // namespace fxfuser::frontend
