#pragma once
// One row of the table, from its fields to an OpRow: which keys a kind may have, the argument strings of targets, and the
// compiled expressions. The JSON library stays in op_table.cpp; a row arrives here as plain fields.
//
// A value (in "args" or after `name=`) is a JSON scalar or list. The strings "inf", "-inf" and "nan" are numbers, a string
// "torch.<dtype>" is a dtype.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {

struct RowFields {
  std::string op;
  std::vector<std::pair<std::string, std::string>> targets;  // in file order
  std::map<std::string, std::string, std::less<>> schemas;   // target -> schema, for targets that we define
  std::map<std::string, std::string, std::less<>> words;     // every key whose value is text (lists joined by blanks)
  std::map<std::string, Attr, std::less<>> args;
  std::map<std::string, bool, std::less<>> flags;             // arg_state, metadata_only
  std::optional<std::pair<int, int>> cost;
};

/// Reads the JSON value after `name=` in an argument string.
using ReadValue = Attr (*)(std::string_view json, std::string_view row);

/// Throws Error(Value) naming the row and the key on anything unknown or contradictory. Pointwise expressions may call `functions`.
OpRow load_row(const RowFields& fields, ReadValue read_value, const RowFunctions& functions = {});

/// The keys whose value is text, in the order of the file format.
const std::vector<std::string_view>& text_keys();

}  // namespace fxfuser::ir
