#pragma once
// A definition under construction: `enter`, `define_*`, ops, `add_output`, `exit`. It holds no state outside itself, so that
// definitions nest and threads define at the same time; what ends without `exit` leaves no trace.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "executor/frontend/fusion_cache.h"
#include "executor/frontend/record.h"
#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

class FusionDefinition;

/// A tensor or a number of one definition.
struct Handle {
  std::shared_ptr<FusionDefinition> definition;
  ir::ValueId id = ir::kNoValue;
  ir::ValueKind kind = ir::ValueKind::Tensor;
};

/// An argument of an op: a handle, a plain value, or a list of arguments.
struct Argument {
  std::variant<ir::Attr, Handle, std::vector<Argument>> v;

  Argument() = default;
  Argument(Handle handle) : v(std::move(handle)) {}
  Argument(std::vector<Argument> list) : v(std::move(list)) {}
  template <typename T>
    requires(std::is_constructible_v<ir::Attr, T &&> && !std::is_same_v<std::remove_cvref_t<T>, Argument>)
  Argument(T&& value) : v(ir::Attr(std::forward<T>(value))) {}
};

class FusionDefinition : public std::enable_shared_from_this<FusionDefinition> {
 public:
  static constexpr std::size_t kMaxLength = 1024;

  /// `max_length`: how many records it may have.
  static std::shared_ptr<FusionDefinition> make(const OpSource& ops, std::size_t max_length = kMaxLength);

  void enter();
  /// Completes it: the fusion of the cache that has the same records, a new one when there is none.
  std::shared_ptr<Fusion> exit(FusionCache& cache);
  /// Leaves it without a trace.
  void abandon();

  /// Throws Error(Runtime) on sizes, contiguity or strides that make no sense, naming the dim.
  Handle define_tensor(TensorRecord record);
  /// The usual short form: any sizes.
  Handle define_tensor(std::size_t rank, ir::DType dtype = ir::DType::Float32);
  /// Float64, Int64, Bool or Complex128.
  Handle define_scalar(ir::DType dtype = ir::DType::Float64);
  /// A number; with a dtype it is converted to it.
  Handle define_constant(const ir::Attr& value, std::optional<ir::DType> dtype = {});
  Handle define_null_tensor();

  /// Calls an op of `fd.ops`. Throws Error(Value) for an unknown name, Error(Type) for arguments that it does not take.
  std::vector<Handle> op(std::string_view name, std::vector<Argument> positional, std::map<std::string, Argument> keywords = {});
  /// The same for ops with one result.
  Handle call(std::string_view name, std::vector<Argument> positional, std::map<std::string, Argument> keywords = {});

  void add_output(const Handle& value, const Handle* alias_input = nullptr, ir::Sizes stride_order = {});

  /// Throws Error(Runtime) when only ATen could tell.
  std::int64_t rank(const Handle& value) const;
  std::optional<ir::DType> dtype(const Handle& value) const;
  const OpSource& ops() const { return ops_; }
  const std::vector<Record>& records() const { return records_; }
  bool is_complete() const { return state_ == State::Complete; }

 private:
  enum class State : std::uint8_t { New, Open, Complete, Abandoned };

  FusionDefinition(const OpSource& ops, std::size_t max_length) : ops_(ops), max_length_(max_length) {}
  void check_open(std::string_view what) const;
  /// Appends a record; the handles of the values that it makes.
  std::vector<Handle> add(Record record);
  ir::ValueId use(const Handle& handle, std::string_view where) const;
  ir::Attr resolve(const Argument& argument, std::string_view where) const;

  const OpSource& ops_;
  const std::size_t max_length_;
  State state_ = State::New;
  std::vector<Record> records_;
  std::vector<Facts> values_;
  std::vector<bool> is_input_;  // by value
};

/// [2, 1, 0] for three row-major dims: checks that it is a permutation. Throws Error(Runtime).
void check_stride_order(const ir::Sizes& order, std::size_t rank);

}  // namespace fxfuser::frontend
