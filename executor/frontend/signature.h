#pragma once
// How an op of `fd.ops` is called: parameters and defaults, the dispatcher overloads that can run it, and what is known of its
// results beforehand. Plain data: the catalog fills it in from the op table and the dispatcher's schemas.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/frontend/record.h"
#include "partitioner/functionalize.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::frontend {

class Replayer;

/// What a schema argument takes.
enum class ParamKind : std::uint8_t { Tensor, Tensors, Number, Int, Float, Bool, Ints, Floats, DType, Device, Text, Other };

/// One argument of an overload, in schema order.
struct OverloadParam {
  std::string param;  // the signature's name for it ("" when the signature never gives it)
  ParamKind kind = ParamKind::Other;
  bool optional = false;             // takes None
  std::optional<ir::Attr> fallback;  // the schema's default
};

struct OpOverload {
  std::string target;  // "aten.sum.dim_IntList"
  std::vector<OverloadParam> params;
  std::map<std::string, ir::Attr, std::less<>> fixed;  // parameters that this overload fixes
  std::vector<ir::ValueKind> outputs;
  partitioner::AliasInfo alias;
};

/// How the first result's rank follows from the arguments.
enum class RankRule : std::uint8_t {
  Unknown,
  Infer,      // the row says it (pointwise, cast, reduction): rank and dtype both
  Same,       // the first tensor's
  Broadcast,  // the largest of the tensors'
  Reduce,     // less the dims of `dims`, unless `keepdim`
  Length,     // the length of the list in the parameter `length_of`
  Less,       // one less than the first tensor's
  Norm,       // the first tensor's, then statistics of rank 1
  Sizes,      // one number a dim
};
enum class DTypeRule : std::uint8_t { Unknown, Same, Param, Int, Bool };

struct SignatureParam {
  std::string name;
  std::string alias;                 // a second keyword for it
  std::string row;                   // the overloads' name for it
  std::optional<ir::Attr> fallback;  // none: must be given
};

using FactsOf = std::function<Facts(ir::ValueId)>;

/// Refuses arguments that make no sense while the definition is written. Throws Error(Runtime).
using ArgumentCheck = void (*)(const std::vector<ir::Attr>& args, const FactsOf& facts);

/// Adds what a call means to the graph; the arguments are in signature order, with the graph's values.
using Composite = std::vector<ir::Attr> (*)(Replayer& replayer, const std::vector<ir::Attr>& args);

struct OpSignature {
  std::string name, doc;
  std::vector<SignatureParam> params;
  const ir::OpRow* row = nullptr;  // null: no row says what it is
  std::vector<OpOverload> overloads;  // in order of preference; empty for a composite
  ArgumentCheck check = nullptr;
  Composite composite = nullptr;
  std::size_t composite_outputs = 1;
  bool returns_list = false;  // a list even of one: sizes
  RankRule rank = RankRule::Unknown;
  const ir::OpRow* infer_as = nullptr;  // RankRule::Infer: the row that says it
  std::string length_of;  // RankRule::Length
  std::vector<DTypeRule> dtypes;  // by result, the last one for all after it; empty: unknown
  bool widens = false;      // 16-bit floats enter as float32
  std::string scalar;       // the host's op on numbers ("operator.add"); empty: none
  std::size_t scalar_arity = 0;

  /// "fd.ops.sum(arg, axes, keepdim=False, dtype=None)".
  std::string text() const;
};

/// Where a definition finds ops.
class OpSource {
 public:
  virtual ~OpSource() = default;
  /// By the name in `fd.ops`; null when there is none.
  virtual const OpSignature* find(std::string_view name) const = 0;
  /// By the table's own name: what composites are made of.
  virtual const OpSignature& row(std::string_view name) const = 0;
};

/// Arguments by position and keyword in the order of the signature, defaults filled in. Throws Error(Type) with the signature.
std::vector<ir::Attr> bind_arguments(const OpSignature& op, std::vector<ir::Attr> positional, std::map<std::string, ir::Attr> keywords);

/// The overload that takes these arguments best; null when none does.
const OpOverload* choose_overload(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts);

/// The arguments of an overload in schema order.
std::vector<ir::Attr> overload_arguments(const OpSignature& op, const OpOverload& overload, const std::vector<ir::Attr>& args);

/// True when no argument is a tensor and at least one is a Scalar of the definition.
bool is_scalar_call(const std::vector<ir::Attr>& args, const FactsOf& facts);

/// What is known of the results. (facts.cpp)
std::vector<Facts> result_facts(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts);

}  // namespace fxfuser::frontend
