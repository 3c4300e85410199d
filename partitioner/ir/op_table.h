#pragma once
// The capability table's rows: one JSON row an op (configs/ops.json), compiled once into OpRow. Everything that the
// partitioner, the code generators, the frontend and the tests know of an op is here; no other file lists ops, except
// decompose (one function per composite).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "partitioner/ir/dtype.h"
#include "partitioner/ir/graph.h"

namespace fxfuser::ir {

enum class OpKind : std::uint8_t {
  Pointwise,  // one expression an element, operands broadcast
  Cast,       // self -> dtype; always a rounding point when it came from the user
  Reduction,  // pre / fold / init / post over dims
  View,       // metadata only: becomes an index map
  Position,   // reads chosen by position: cat, pad
  Indexed,    // reads addressed by an integer tensor: index_read
  Factory,    // no tensor input: full, index
  Composite,  // `via` names the decompose function; ATen views such as aten.t are composites of the five View primitives
};

/// Which element types may enter the tensor operands of a row.
enum class DTypeSet : std::uint8_t { Float, Int, Bool, IntBool, Number, Any };

/// How the result dtype follows from the operands (PyTorch's own words).
enum class ResultRule : std::uint8_t {
  Default,         // promote, compute in the promoted type's register type
  NoOpmath,        // same, computed in the type itself
  IntToFloat,      // integers and bool become the default float (float32)
  AlwaysBool,
  BoolToLong,      // sum, prod of bool/integers -> int64
  ComplexToFloat,
  Same,            // the dtype of the first tensor operand
  AttrDType,       // the `dtype` parameter (a None falls back to the rule before it: BoolToLong for reductions, Same else)
  Long,            // always int64 (argmax, index)
};

/// A piece of a compiled expression, one token each: Text (an operator, a parenthesis, a comma, `?`, `:`, `T`, `inf`, `nan`
/// or the bare name of a prelude function, which the writer prefixes), a {hole} naming a parameter (text without braces),
/// a number as the row spells it, which the writer prints in the compute type, or a function of RowFunctions with its namespace.
struct ExprPiece {
  enum class Kind : std::uint8_t { Text, Hole, Number, Function } kind;
  std::string text;
};
using Expr = std::vector<ExprPiece>;

/// C++ text of functions that rows added at run time may call beside the prelude's, by target. Never part of a JSON row.
struct RowFunctions {
  std::string cuda, host;
};
/// The namespace in which a text of functions is compiled: texts that differ never meet.
std::string functions_namespace(std::string_view text);

/// One overload that means this op: its own argument order and fixed values.
struct OpTarget {
  std::string target;                                         // "aten.sum.dim_IntList"
  std::vector<std::string> names;                             // per schema argument: a row param, or "" for ignored
  std::map<std::string, Attr, std::less<>> fixed;             // params that this overload fixes: keepdim=false
  std::vector<std::string> must_default;                      // ignored arguments that must be None/absent to be supported
  std::vector<std::size_t> must_default_at;                   // their positions in the schema
  std::string schema;                                         // "(Tensor self) -> Tensor" where we define the overload
};

struct OpRow {
  std::string op;                   // canonical name
  OpKind kind = OpKind::Pointwise;
  std::vector<std::string> params;  // canonical argument order
  std::vector<std::string> outputs;  // names; one unless said ("out")
  std::vector<OpTarget> targets;
  DTypeSet dtypes = DTypeSet::Number;
  ResultRule result = ResultRule::Default;
  std::vector<std::string> tensor_params;  // pointwise: the params that take part in broadcasting and promotion
  // What eager rounds to the common 16-bit dtype before it computes, by target. Operands are rounded but for numbers and single
  // elements given for these; other parameters are not, but for these.
  struct ByTarget {
    std::vector<std::string> cuda, host;
  };
  ByTarget exact, rounded;
  std::map<std::string, Attr, std::less<>> defaults;
  Expr expr_cuda, expr_host;        // pointwise; empty = not supported there
  Expr expr_narrow;                 // pointwise, CUDA: where only a rounding to 16 bits sees the result; empty = as expr_cuda
  RowFunctions functions;           // that the expressions call; empty where they call none
  Expr pre, fold, post, init;       // reductions: holes {self}; {a},{b}; {acc},{n} and scalar params; init a literal
  bool arg_state = false;           // reductions whose state is (value, index): fold is the predicate "take {b}"
  std::string via;                  // composites
  std::string fallback;             // overload that a prims/nvprims target runs as; empty: an aten one of the row
  std::vector<std::string> writes;  // hidden writes
  std::string functional;           // the row that gives what is written as further outputs, named as the params
  std::vector<std::string> checks;  // names of extra predicates
  // Stride rule of the eager result: iterator, contiguous, like_self, memory_format (of `input`), input_format (the same on the CPU, like
  // `input` elsewhere), view, own (as its decomposition says, which may be the tensor it took),
  // copy (as its decomposition says, always new memory).
  std::string strides = "iterator";
  int cost_slots = 1;               // issue slots an element
  int cost_special = 0;             // special-function ops an element
  bool metadata_only = false;       // launches nothing on its own (views, composites that are views)
};

/// Does a primitive make a view of its operand's memory? `flip` is a copy in eager: strides are never negative.
inline bool is_memory_view(const OpRow& row) { return row.kind == OpKind::View && row.op != "flip"; }

/// Immutable after load, but for rows that users register (which append).
class OpTable {
 public:
  /// Loads JSON text; `source` names it in errors. Throws Error(Value) naming the row on anything unknown, doubled or
  /// contradictory.
  static OpTable from_json(std::string_view text, std::string_view source, const RowFunctions& functions = {});
  /// Adds rows at run time: {"rows": [...]}, one row or a list of rows. A bad row throws and leaves the table as it was, as do functions
  /// that no row calls.
  void add_json(std::string_view text, std::string_view source, const RowFunctions& functions = {});

  const OpRow* find(std::string_view op) const;                     // by canonical name
  std::pair<const OpRow*, const OpTarget*> find_target(std::string_view target) const;
  /// Is this a row, one of its targets ("aten.add.Tensor") or all overloads of one ("aten.add")?
  bool is_named(std::string_view word) const;
  const std::vector<std::unique_ptr<OpRow>>& rows() const { return rows_; }
  /// Sets row and form on every node of an imported graph.
  void bind(Graph& graph) const;

 private:
  std::vector<std::unique_ptr<OpRow>> rows_;
  std::map<std::string, const OpRow*, std::less<>> by_name_;
  std::unordered_map<std::string, std::pair<const OpRow*, const OpTarget*>> by_target_;  // looked up, never iterated
  std::set<std::string, std::less<>> packets_;  // targets without their overloads
};

/// configs/ops.json as embedded at build.
std::string_view embedded_ops_json();

/// Compiles a row expression and checks it token by token against the closed grammar: numbers, {holes} in `holes`,
/// functions of the prelude vocabulary and those that `functions` (C++ text) defines, operators, parentheses, ?: and commas. Throws
/// Error(Value) naming `row`.
Expr compile_expr(std::string_view text, const std::vector<std::string>& holes, std::string_view row, std::string_view functions = {});
/// The prelude's function names; both preludes define all of them, overloaded on the register types.
const std::vector<std::string_view>& prelude_functions();

}  // namespace fxfuser::ir
