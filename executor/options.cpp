#include "executor/options.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <functional>

#include "codegen/file_io.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using ir::Attr;

std::set<std::string> split_commas(const char* text) {
  if (text == nullptr) return {};
  const std::vector<std::string> words = codegen::split_words(text, ",");
  return {words.begin(), words.end()};
}

bool as_flag(const std::string& key, const Attr& value) {
  const auto* flag = std::get_if<bool>(&value.v);
  FXF_CHECK(flag != nullptr, Type, "executor_parameters['{}'] must be True or False", key);
  return *flag;
}

std::set<std::string> as_words(const std::string& key, const Attr& value) {
  if (const auto* word = std::get_if<std::string>(&value.v)) return split_commas(word->c_str());
  FXF_CHECK(value.is_list(), Type, "executor_parameters['{}'] must be a list of strings", key);
  std::set<std::string> words;
  for (const Attr& item : value.list()) {
    const auto* word = std::get_if<std::string>(&item.v);
    FXF_CHECK(word != nullptr, Type, "executor_parameters['{}'] must be a list of strings", key);
    words.insert(*word);
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

const std::set<std::string>& dump_words() {
  static const std::set<std::string> words{"fusion_ir", "segmented_fusion", "scheduler_params", "cuda_kernel", "host_kernel", "partition", "plan", "launch_param"};
  return words;
}

struct OptionRow {
  OptionDoc doc;
  std::function<void(Options&, const std::string&, const Attr&)> set;
};

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {{"allow_single_op_fusion", "bool", "True", "False leaves every group with one compute op to ATen; strict ignores it"},
       [](Options& o, const std::string& k, const Attr& v) { o.allow_single_op_fusion = as_flag(k, v); }},
      {{"compile", "str", "sync", "'sync' compiles missing kernels in the first call, 'async' in the background while calls run through ATen, 'never' sends them to ATen"},
       [](Options& o, const std::string& k, const Attr& v) {
         o.compile = as_choice<CompilePolicy>(k, v, {{"async", CompilePolicy::Async}, {"never", CompilePolicy::Never}, {"sync", CompilePolicy::Sync}});
       }},
      {{"cuda_graph", "bool", "False", "True captures a plan of static shapes after two calls and replays it; results are copied out, so they never change later"},
       [](Options& o, const std::string& k, const Attr& v) { o.cuda_graph = as_flag(k, v); }},
      {{"deterministic", "bool", "False", "no choice that may change bits between two runs of the same program"},
       [](Options& o, const std::string& k, const Attr& v) { o.deterministic = as_flag(k, v); }},
      {{"dump", "list of str", "[]", "what to print on the way: fusion_ir, segmented_fusion, scheduler_params, cuda_kernel, host_kernel, partition, plan, launch_param"},
       [](Options& o, const std::string& k, const Attr& v) {
         o.dump = as_words(k, v);
         for (const std::string& word : o.dump) {
           FXF_CHECK(dump_words().count(word) > 0, Value, "executor_parameters['dump'] holds '{}'; there are {}", word, fmt::join(dump_words(), ", "));
         }
       }},
      {{"on_error", "str", "fallback", "'fallback' sends a fusion that can't be made to ATen with a reason, 'raise' raises it"},
       [](Options& o, const std::string& k, const Attr& v) {
         o.on_error = as_choice<OnError>(k, v, {{"fallback", OnError::Fallback}, {"raise", OnError::Raise}});
       }},
      {{"rounding", "str", "default", "'eager' rounds every 16-bit intermediate to its traced dtype and forbids contraction"},
       [](Options& o, const std::string& k, const Attr& v) {
         o.rounding = as_choice<Rounding>(k, v, {{"default", Rounding::Default}, {"eager", Rounding::Eager}});
       }},
      {{"skip_ops", "list of str", "[]", "targets or row names that must stay with ATen"},
       [](Options& o, const std::string& k, const Attr& v) { o.skip_ops = as_words(k, v); }},
      {{"use_python_fusion_cache", "bool", "True", "False plans anew at each call"},
       [](Options& o, const std::string& k, const Attr& v) { o.use_python_fusion_cache = as_flag(k, v); }},
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
  out.options.dump = environment().dump;
  if (environment().disable.count("fallback") > 0) out.options.on_error = OnError::Raise;
  if (environment().disable.count("fma") > 0) out.options.rounding = Rounding::Eager;
  for (const auto& [key, value] : parameters) {
    bool known = false;
    for (const OptionRow& row : option_rows()) {
      if (row.doc.name != key) continue;
      row.set(out.options, key, value);
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

const Environment& environment() {
  static const Environment read = [] {
    Environment out;
    if (const char* folder = std::getenv("FXFUSER_CACHE_DIR")) out.cache_dir = folder;
    for (const char* name : {"FXFUSER_DUMP", "PYTORCH_NVFUSER_DUMP"}) {
      for (const std::string& word : split_commas(std::getenv(name))) {
        if (dump_words().count(word) > 0) out.dump.insert(word);
      }
    }
    for (const char* name : {"FXFUSER_DISABLE", "PYTORCH_NVFUSER_DISABLE"}) out.disable.merge(split_commas(std::getenv(name)));
    const char* no_fallback = std::getenv("PYTORCH_NVFUSER_DISABLE_FALLBACK");
    if (no_fallback != nullptr && std::string_view(no_fallback) == "1") out.disable.insert("fallback");
    out.no_disk_cache = out.disable.count("disk_cache") > 0;
    return out;
  }();
  return read;
}

}  // namespace fxfuser::executor
