#pragma once
// The settings of one call: `executor` and `executor_parameters`, validated once and then compared as a value (it is part of
// every plan key). The only reader of environment variables.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

enum class Mode : std::uint8_t { Aten, Nvfuser, Strict };
enum class Rounding : std::uint8_t { Default, Eager };
enum class OnError : std::uint8_t { Fallback, Raise };
enum class CompilePolicy : std::uint8_t { Sync, Async, Never };

struct Options {
  Mode mode = Mode::Nvfuser;
  bool use_python_fusion_cache = true;  // false: plan anew at each call
  bool allow_single_op_fusion = true;
  Rounding rounding = Rounding::Default;
  CompilePolicy compile = CompilePolicy::Sync;
  OnError on_error = OnError::Fallback;
  bool cuda_graph = false;
  bool deterministic = false;
  bool fused_rng = false;  // random ops draw from a seed a call, in kernels
  std::int64_t host_memory = 256;  // MiB of CPU outputs that died, kept for later ones; 0: they come from PyTorch's allocator
  bool fma = true;  // false: a product and a sum are rounded each (from the environment)
  std::set<std::string> skip_ops;
  std::set<std::string> dump;
  bool operator==(const Options&) const = default;
};

struct ParsedOptions {
  Options options;
  std::vector<std::string> warnings;  // unknown keys, naming the known ones; words that mean nothing here
};

/// Validates. Throws Error(Value) for an unknown executor or value, Error(Type) for a wrong type, Error(Runtime) for a word in the
/// environment that there is not.
ParsedOptions parse_options(std::string_view executor, const std::map<std::string, ir::Attr>& parameters);

/// Documentation rows (name, type, default, meaning), generated from the same table that parse_options reads.
struct OptionDoc {
  std::string name, type, fallback, meaning;
};
std::vector<OptionDoc> option_docs();

/// What the environment says, read once: cache folder, dump words, disable words.
struct Environment {
  std::string cache_dir;  // empty: default
  bool no_disk_cache = false;
  std::set<std::string> dump, disable;
  std::vector<std::string> notes;  // to be told once
  std::string problem;             // a variable that can't be read, with what it may hold
};
const Environment& environment();

}  // namespace fxfuser::executor
