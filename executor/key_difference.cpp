#include "executor/key_difference.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/ScalarType.h>
#include <fmt/ranges.h>

#include <optional>

namespace fxfuser::executor {
namespace {

/// One input as its words say; see sign.
struct InputFacts {
  std::string kind;  // "a tensor", "an integer", ...
  std::int64_t keys = 0, value = 0, alignment = 0;
  std::string dtype, device;
  std::vector<std::int64_t> sizes, strides;
};

struct CallFacts {
  std::int64_t included = 0, excluded = 0, modes = 0;
  std::vector<InputFacts> inputs;
};

InputFacts read_tensor(std::span<const std::int64_t> words, std::size_t& at) {
  InputFacts out;
  out.kind = "a tensor";
  out.keys = words[at++];
  const std::int64_t packed = words[at++];
  out.dtype = c10::toString(static_cast<c10::ScalarType>(packed >> 32));
  const auto index = (packed >> 24) & 0xff;
  out.device = index == 0xff ? "the CPU" : fmt::format("device {}", index);
  const auto rank = static_cast<std::size_t>((packed >> 8) & 0xffff);
  out.alignment = packed & 0xff;
  out.sizes.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(at + rank));
  at += rank;
  out.strides.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(at + rank));
  at += rank;
  return out;
}

InputFacts read_input(std::span<const std::int64_t> words, std::size_t& at) {
  InputFacts out;
  switch (words[at]) {
    case -1: out.kind = "an integer", out.value = words[at + 1], at += 2; return out;
    case -2: out.kind = "a float", ++at; return out;
    case -3: out.kind = "a flag", out.value = 1, ++at; return out;
    case -4: out.kind = "a flag", ++at; return out;
    case -5: out.kind = "None", ++at; return out;
    default: return read_tensor(words, at);
  }
}

CallFacts read_words(std::span<const std::int64_t> words) {
  CallFacts out{words[0], words[1], words[2], {}};
  for (std::size_t at = 3; at < words.size();) out.inputs.push_back(read_input(words, at));
  return out;
}

class Differences {
 public:
  template <typename T>
  void compare(const std::string& where, const char* field, const T& before, const T& now) {
    if (!(before == now)) add(where, field, fmt::format("{} -> {}", before, now));
  }
  void add(const std::string& where, std::string field, const std::string& values) {
    out.push_back({field, fmt::format("{}{} {}", where.empty() ? "" : where + ": ", field, values)});
  }
  std::vector<KeyDifference> out;
};

std::string keys_text(std::int64_t raw) { return c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, static_cast<std::uint64_t>(raw))); }

void compare_inputs(const std::string& where, const InputFacts& before, const InputFacts& now, Differences& out) {
  out.compare(where, "kind", before.kind, now.kind);
  if (before.kind != now.kind) return;
  out.compare(where, "value", before.value, now.value);
  if (before.keys != now.keys) out.add(where, "dispatch keys", keys_text(before.keys) + " -> " + keys_text(now.keys));
  out.compare(where, "dtype", before.dtype, now.dtype);
  out.compare(where, "device", before.device, now.device);
  out.compare(where, "sizes", before.sizes, now.sizes);
  if (before.sizes == now.sizes) out.compare(where, "strides", before.strides, now.strides);
  out.compare(where, "alignment", before.alignment, now.alignment);
}

std::string listed_words(const std::set<std::string>& words) { return fmt::format("[{}]", fmt::join(words, ", ")); }

void compare_options(const Options& before, const Options& now, Differences& out) {
  const auto number = [](auto value) { return static_cast<int>(value); };
  const std::string none;
  out.compare(none, "option executor", number(before.mode), number(now.mode));
  out.compare(none, "option allow_single_op_fusion", before.allow_single_op_fusion, now.allow_single_op_fusion);
  out.compare(none, "option rounding", number(before.rounding), number(now.rounding));
  out.compare(none, "option compile", number(before.compile), number(now.compile));
  out.compare(none, "option on_error", number(before.on_error), number(now.on_error));
  out.compare(none, "option cuda_graph", before.cuda_graph, now.cuda_graph);
  out.compare(none, "option deterministic", before.deterministic, now.deterministic);
  out.compare(none, "option fused_rng", before.fused_rng, now.fused_rng);
  out.compare(none, "option skip_ops", listed_words(before.skip_ops), listed_words(now.skip_ops));
  out.compare(none, "option dump", listed_words(before.dump), listed_words(now.dump));
}

}  // namespace

std::vector<KeyDifference> key_differences(const PlanKey& before, const PlanKey& now, std::span<const std::string> names) {
  const CallFacts old_facts = read_words(before.signature), facts = read_words(now.signature);
  Differences out;
  if (old_facts.included != facts.included || old_facts.excluded != facts.excluded) {
    out.add("", "dispatch state", fmt::format("{} without {} -> {} without {}", keys_text(old_facts.included), keys_text(old_facts.excluded), keys_text(facts.included), keys_text(facts.excluded)));
  }
  out.compare("", "grad mode", (old_facts.modes & 1) != 0, (facts.modes & 1) != 0);
  out.compare("", "inference mode", (old_facts.modes & 2) != 0, (facts.modes & 2) != 0);
  for (std::size_t i = 0; i < std::min(old_facts.inputs.size(), facts.inputs.size()); ++i) {
    compare_inputs(i < names.size() ? fmt::format("input {} ({})", i, names[i]) : fmt::format("input {}", i), old_facts.inputs[i], facts.inputs[i], out);
  }
  compare_options(before.options, now.options, out);
  return std::move(out.out);
}

std::string_view advice_on(std::string_view field) {
  struct Row {
    std::string_view field, advice;
  };
  static constexpr Row table[] = {
      {"sizes", "a new shape costs a plan and no compile; fewer distinct shapes (padding to a few lengths) would cost less"},
      {"strides", "call contiguous() on the input, or give it one layout at all calls"},
      {"alignment", "inputs that start at other places in memory (slices of a larger tensor) take kernels with narrower loads; copy them, or cut them at multiples of 16 bytes"},
      {"dtype", "give the input one dtype at all calls"},
      {"value", "an integer or flag is part of the plan; a tensor of no dims, or a float, is not"},
      {"kind", "give the argument one kind at all calls"},
      {"device", "prepare a module of its own for each device"},
      {"dispatch keys", "inference tensors and usual ones have plans of their own: make inputs in one mode"},
      {"grad mode", "call it under torch.no_grad() always, or never"},
      {"inference mode", "call it under torch.inference_mode() always, or never"},
  };
  for (const Row& row : table) {
    if (row.field == field) return row.advice;
  }
  return field.starts_with("option ") ? "keep executor and executor_parameters the same at all calls" : "keep it the same at all calls";
}

}  // namespace fxfuser::executor
