#pragma once
// What a definition is made of. A record is a functor: called on a Replayer it adds itself to the graph, which happens only
// when the definition is not in the cache. Values are numbered in the order in which records make them.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::frontend {

class Replayer;  // replay.h

/// What is known of a value before anything runs. A rank or dtype that only ATen could tell is unknown.
struct Facts {
  ir::ValueKind kind = ir::ValueKind::Tensor;
  std::optional<std::int64_t> rank;
  std::optional<ir::DType> dtype;
};

/// A tensor input.
struct TensorRecord {
  ir::Sizes sizes;                       // -1: any size, 1: broadcast; other numbers only with static_sizes
  std::vector<std::int8_t> contiguity;   // by dim: 1, 0, or -1 where the question has no meaning (broadcast)
  ir::DType dtype = ir::DType::Float32;
  bool is_cpu = false;                   // a 0-dim tensor on the CPU
  bool static_sizes = false;             // the sizes must be these
  ir::Sizes stride_order = {};                // by dim: 0 for the fastest; empty: not said
  void operator()(Replayer& replayer) const;
};

/// A number that comes as an input.
struct ScalarRecord {
  ir::DType dtype = ir::DType::Float64;
  void operator()(Replayer& replayer) const;
};

/// A number in the definition; None stands for a tensor that is not there.
struct ConstantRecord {
  ir::Attr value;
  std::optional<ir::DType> dtype;
  void operator()(Replayer& replayer) const;
};

/// A call of an op: its name as in `fd.ops`, its arguments in the order of the signature.
struct OpRecord {
  std::string op;
  std::vector<ir::Attr> args;
  std::vector<Facts> outputs;
  void operator()(Replayer& replayer) const;
};

/// A result, or (with `alias`) a write into that input, which is not returned.
struct OutputRecord {
  ir::ValueId value = ir::kNoValue;
  ir::ValueId alias = ir::kNoValue;
  ir::Sizes stride_order = {};
  void operator()(Replayer& replayer) const;
};

using Record = std::variant<TensorRecord, ScalarRecord, ConstantRecord, OpRecord, OutputRecord>;

/// How many values a record makes, and what is known of each.
std::vector<Facts> facts_of(const Record& record);

/// The whole list as bytes, equal for equal definitions: floats to the last bit, NaN equal to NaN, True unlike 1.
std::string key_of(const std::vector<Record>& records);

/// Are two arguments the same in that sense?
bool is_same(const ir::Attr& a, const ir::Attr& b);

}  // namespace fxfuser::frontend
