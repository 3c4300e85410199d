#pragma once
// The graph every phase works on: values and nodes in dense vectors, nodes in topological order by construction, no
// pointers between them. Plain data: phases are free functions that make a new graph or a side table, never a rewrite in
// place across phases. A graph is either as imported (targets are ATen/prims overloads, arguments in schema order) or
// canonical (every node has a row and its arguments in OpRow::params order; see decompose.h).

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "partitioner/ir/tensor_meta.h"

namespace fxfuser::ir {

struct OpRow;     // op_table.h
struct OpTarget;  // op_table.h

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffu;
inline constexpr NodeId kNoNode = 0xffffffffu;

struct ValueRef {
  ValueId id = kNoValue;
  bool operator==(const ValueRef&) const = default;
};

enum class Layout : std::uint8_t { Strided, Other };
enum class MemoryFormat : std::uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// An argument that the closed variant does not hold (a generator, a process group, a Python callable). Only the executor
/// and bindings open it; `text` is for reports and keys.
struct Opaque {
  std::shared_ptr<void> handle;
  std::string text;
  bool operator==(const Opaque& other) const { return handle == other.handle; }
};

struct Attr;
using AttrList = std::vector<Attr>;

/// One argument of a node.
struct Attr {
  using Variant = std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string, DType, Device,
                               Layout, MemoryFormat, ValueRef, Opaque, AttrList>;
  Variant v;

  Attr() = default;
  template <typename T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Attr> && std::is_constructible_v<Variant, T&&>)
  Attr(T&& value) : v(std::forward<T>(value)) {}
  Attr(int value) : v(static_cast<std::int64_t>(value)) {}
  Attr(const char* text) : v(std::string(text)) {}

  bool operator==(const Attr& other) const { return v == other.v; }
  bool is_none() const { return std::holds_alternative<std::monostate>(v); }
  bool is_value() const { return std::holds_alternative<ValueRef>(v); }
  bool is_list() const { return std::holds_alternative<AttrList>(v); }
  bool is_number() const;  // bool, int, float or complex
  ValueId value() const { return std::get<ValueRef>(v).id; }
  const AttrList& list() const { return std::get<AttrList>(v); }

  /// A number as double / as integer; throws Error(Type) when it is something else.
  double as_double() const;
  std::int64_t as_int() const;
  bool as_bool() const;
  /// A list of integers (a single int counts as a list of one; None as empty).
  Sizes as_sizes() const;
};

enum class ValueKind : std::uint8_t { Tensor, Scalar, Other };

/// A tensor or a number that flows along an edge.
struct Value {
  ValueKind kind = ValueKind::Tensor;
  NodeId producer = kNoNode;      // kNoNode: graph input or constant
  std::uint32_t output = 0;       // which output of the producer
  std::optional<TensorMeta> meta;  // as imported: a forecast (dtype, rank and device decide verdicts); canonical: exact
  std::string name;
};

enum class NodeKind : std::uint8_t {
  Op,        // a dispatcher op, or a canonical node
  Scalar,    // host arithmetic on numbers and sizes: "operator.add", "sym_size", ...
  Callable,  // anything else, run through the Opaque handle in args[0]
};

struct Node {
  NodeKind kind = NodeKind::Op;
  std::string name;            // the FX node's name; a canonical node keeps the name of what it came from
  std::string target;          // "aten.add.Tensor"; "fxf.add" for canonical nodes
  const OpRow* row = nullptr;  // null: no row names this target
  const OpTarget* form = nullptr;  // how args map to row->params; null in a canonical graph (args are in params order)
  std::vector<Attr> args;      // all schema arguments in schema order, keyword-only ones last, defaults filled in
  std::vector<ValueId> outputs;
  std::vector<NodeId> after;   // ordering edges (from functionalisation), besides the data edges
  std::string where;           // "file.py:12" of the user's code, or empty
  std::uint32_t origin = 0;    // index of the FX node this came from: the plan orders steps by it
};

/// A tensor the module owns (get_attr). Bound by bindings and checked at each call; a hidden input to everything below.
struct Constant {
  ValueId value = kNoValue;
  std::string path;  // dotted name in the module
};

/// A write that the caller can see: at the end (or when `after` has run) `source` is copied into the storage of `target`.
struct WriteBack {
  ValueId target = kNoValue;  // a graph input or constant
  ValueId source = kNoValue;
  std::uint32_t versions = 1;  // by how much the writes that it stands for raise the target's version counter
};

/// `target` (a graph input or constant) holds `result` from `node` on, until the next write to it.
struct Write {
  NodeId node = kNoNode;
  ValueId target = kNoValue;
  ValueId result = kNoValue;
  bool counted = true;  // raises the target's version counter
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological
  std::vector<ValueId> inputs;
  std::vector<Constant> constants;
  std::vector<Attr> outputs;  // flattened; ValueRef, None, numbers
  std::vector<WriteBack> write_backs;
  std::vector<Write> writes;  // every write that a write-back sums up, in order
  // By value: how often the tensor that it stands for is written in place, by eager's version counter. May be shorter than values.
  std::vector<std::uint32_t> versions;

  ValueId add_value(Value value);
  ValueId add_input(std::string name, std::optional<TensorMeta> meta, ValueKind kind = ValueKind::Tensor);
  ValueId add_constant(std::string path, std::optional<TensorMeta> meta);
  /// Appends a node and makes its `output_count` values (tensors unless told otherwise); returns its id.
  NodeId add_node(Node node, std::size_t output_count, ValueKind kind = ValueKind::Tensor);

  const Value& value(ValueId id) const { return values[id]; }
  const TensorMeta& meta(ValueId id) const { return *values[id].meta; }
  const Node& node(NodeId id) const { return nodes[id]; }
};

/// Calls fn(ValueId) for each value in an argument list, in order, inside nested lists too.
template <typename Fn>
void for_each_value(const std::vector<Attr>& args, Fn&& fn) {
  for (const Attr& attr : args) {
    if (attr.is_value()) fn(attr.value());
    else if (attr.is_list()) for_each_value(attr.list(), fn);
  }
}

/// users[v]: the nodes that read value v, ascending, each once.
std::vector<std::vector<NodeId>> users_of(const Graph& graph);

/// The argument that means `param` of the node's row, through its form or by canonical position; None when absent.
const Attr& arg(const Node& node, std::string_view param);

}  // namespace fxfuser::ir
