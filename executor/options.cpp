#include "executor/options.h"

#include <cstdlib>
#include <functional>

#include "executor/option_words.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using ir::Attr;

bool as_flag(const std::string& key, const Attr& value) {
  const auto* flag = std::get_if<bool>(&value.v);
  FXF_CHECK(flag != nullptr, Type, "executor_parameters['{}'] must be True or False", key);
  return *flag;
}

std::int64_t as_count(const std::string& key, const Attr& value, std::int64_t most) {
  const auto* count = std::get_if<std::int64_t>(&value.v);
  FXF_CHECK(count != nullptr, Type, "executor_parameters['{}'] must be a whole number", key);
  FXF_CHECK(*count >= 0 && *count <= most, Value, "executor_parameters['{}'] is {}; it can be 0 to {}", key, *count, most);
  return *count;
}

std::vector<std::string> as_words(const std::string& key, const Attr& value) {
  if (const auto* word = std::get_if<std::string>(&value.v)) return split_option_list(*word);
  FXF_CHECK(value.is_list(), Type, "executor_parameters['{}'] must be a list of strings", key);
  std::vector<std::string> words;
  for (const Attr& item : value.list()) {
    const auto* word = std::get_if<std::string>(&item.v);
    FXF_CHECK(word != nullptr, Type, "executor_parameters['{}'] must be a list of strings", key);
    for (std::string& piece : split_option_list(*word)) words.push_back(std::move(piece));
  }
  return words;
}

template <typename T>
T as_choice(const std::string& key, const Attr& value, std::initializer_list<std::pair<const char*, T>> choices) {
  const auto* word = std::get_if<std::string>(&value.v);
  FXF_CHECK(word != nullptr, Type, "executor_parameters['{}'] must be a string", key);
  std::string known;
  for (const auto& [name, choice] : choices) {
    if (*word == name) return choice;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw_error(ErrorKind::Value, fmt::format("executor_parameters['{}'] is '{}'; it can be {}", key, *word, known));
}

struct OptionRow {
  OptionDoc doc;
  std::function<void(ParsedOptions&, const std::string&, const Attr&)> set;
};

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {{"allow_single_op_fusion", "bool", "True", "False leaves every group with one compute op to ATen; strict ignores it"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.allow_single_op_fusion = as_flag(k, v); }},
      {{"compile", "str", "sync", "'sync' compiles missing kernels in the first call, 'async' in the background while calls run through ATen, 'never' sends them to ATen"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) {
         o.options.compile = as_choice<CompilePolicy>(k, v, {{"async", CompilePolicy::Async}, {"never", CompilePolicy::Never}, {"sync", CompilePolicy::Sync}});
       }},
      {{"cuda_graph", "bool", "False", "True captures a plan of static shapes after two calls and replays it; results are copied out, so they never change later"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.cuda_graph = as_flag(k, v); }},
      {{"deterministic", "bool", "False", "no choice that may change bits between two runs of the same program"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.deterministic = as_flag(k, v); }},
      {{"dump", "list of str", "[]", "what to print on the way: " + listed(dump_words())},
       [](ParsedOptions& o, const std::string& k, const Attr& v) {
         WordList read = read_words(dump_words(), fmt::format("executor_parameters['{}']", k), as_words(k, v));
         o.options.dump = std::move(read.words);
         o.warnings.insert(o.warnings.end(), read.notes.begin(), read.notes.end());
       }},
      {{"fused_rng", "bool", "False", "True draws a seed a call from the default generator and makes random numbers in the kernels (Philox), not eager's stream"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.fused_rng = as_flag(k, v); }},
      {{"host_memory", "int", "256", "MiB of memory of large CPU outputs that died that are kept for later ones, for a second; 0 leaves all to PyTorch's allocator"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.host_memory = as_count(k, v, 1 << 20); }},
      {{"on_error", "str", "fallback", "'fallback' sends a fusion that can't be made to ATen with a reason, 'raise' raises it"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) {
         o.options.on_error = as_choice<OnError>(k, v, {{"fallback", OnError::Fallback}, {"raise", OnError::Raise}});
       }},
      {{"rounding", "str", "default", "'eager' rounds every 16-bit intermediate to its traced dtype and forbids contraction"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) {
         o.options.rounding = as_choice<Rounding>(k, v, {{"default", Rounding::Default}, {"eager", Rounding::Eager}});
       }},
      {{"skip_ops", "list of str", "[]", "targets or row names that must stay with ATen"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) {
         const std::vector<std::string> words = as_words(k, v);
         o.options.skip_ops = {words.begin(), words.end()};
       }},
      {{"use_python_fusion_cache", "bool", "True", "False plans anew at each call"},
       [](ParsedOptions& o, const std::string& k, const Attr& v) { o.options.use_python_fusion_cache = as_flag(k, v); }},
  };
  return rows;
}

Mode parse_mode(std::string_view executor) {
  if (executor == "nvfuser") return Mode::Nvfuser;
  if (executor == "strictly_nvfuser") return Mode::Strict;
  FXF_CHECK(executor == "aten", Value, "executor is '{}'; it can be 'aten', 'nvfuser' or 'strictly_nvfuser'", executor);
  return Mode::Aten;
}

}  // namespace

ParsedOptions parse_options(std::string_view executor, const std::map<std::string, Attr>& parameters) {
  ParsedOptions out;
  out.options.mode = parse_mode(executor);
  FXF_CHECK(environment().problem.empty() || out.options.mode == Mode::Aten, Runtime, "{}", environment().problem);
  out.options.dump = environment().dump;
  if (environment().disable.count("fallback") > 0) out.options.on_error = OnError::Raise;
  out.options.fma = environment().disable.count("fma") == 0;
  for (const auto& [key, value] : parameters) {
    bool known = false;
    for (const OptionRow& row : option_rows()) {
      if (row.doc.name != key) continue;
      row.set(out, key, value);
      known = true;
    }
    if (known) continue;
    std::string names;
    for (const OptionRow& row : option_rows()) names += (names.empty() ? "" : ", ") + row.doc.name;
    out.warnings.push_back(fmt::format("executor_parameters has an unknown key '{}'; known are {}", key, names));
  }
  if (out.options.mode == Mode::Strict && out.options.compile == CompilePolicy::Async) out.options.compile = CompilePolicy::Sync;  // strict leaves nothing to ATen
  return out;
}

std::vector<OptionDoc> option_docs() {
  std::vector<OptionDoc> docs;
  for (const OptionRow& row : option_rows()) docs.push_back(row.doc);
  return docs;
}

namespace {

/// Adds the words of both variables: ours, and the name of 2022.
void read_variables(std::span<const OptionWord> table, std::initializer_list<const char*> names, std::set<std::string>& words, Environment& out) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    try {
      WordList read = read_words(table, name, split_option_list(text));
      words.merge(read.words);
      out.notes.insert(out.notes.end(), read.notes.begin(), read.notes.end());
    } catch (const Error& error) {
      out.problem = fmt::format("Parsing {} failed. Invalid option: {}", name, error.what());
    }
  }
}

}  // namespace

const Environment& environment() {
  static const Environment read = [] {
    Environment out;
    if (const char* folder = std::getenv("FXFUSER_CACHE_DIR")) out.cache_dir = folder;
    read_variables(dump_words(), {"FXFUSER_DUMP", "PYTORCH_NVFUSER_DUMP"}, out.dump, out);
    read_variables(disable_words(), {"FXFUSER_DISABLE", "PYTORCH_NVFUSER_DISABLE"}, out.disable, out);
    const char* no_fallback = std::getenv("PYTORCH_NVFUSER_DISABLE_FALLBACK");
    if (no_fallback != nullptr && std::string_view(no_fallback) == "1") out.disable.insert("fallback");
    if (out.disable.count("fma") > 0) out.notes.emplace_back("FMA is switched off for all generated kernels, which may slow them down");
    out.no_disk_cache = out.disable.count("disk_cache") > 0;
    return out;
  }();
  return read;
}

}  // namespace fxfuser::executor
