#include "executor/option_words.h"

#include <fmt/format.h>

namespace fxfuser::executor {

std::span<const OptionWord> dump_words() {
  static constexpr OptionWord table[] = {
      {"cuda_kernel", "the text of each CUDA kernel, without the prelude"},
      {"cuda_to_file", "the same with the prelude, as <kernel>.cu in the current folder"},
      {"dump_eff_bandwidth", "a line a launch: time, and bytes of its tensors by that time"},
      {"fusion_ir", "each group as a graph of primitive ops"},
      {"host_kernel", "the text of each host kernel, without the prelude"},
      {"launch_param", "a line a launch: grid, block and shared memory; on the host work items and the smallest share of a thread"},
      {"partition", "the graph and its groups"},
      {"plan", "the steps that a call runs"},
      {"ptx", "each CUDA kernel as PTX"},
      {"python_definition", "a FusionDefinition, and each group of a graph, as Python that makes it again"},
      {"sass", "each CUDA kernel as machine code (needs nvdisasm from a CUDA toolkit)"},
      {"scheduler_params", "the schedule of each kernel"},
      {"segmented_fusion", "what each kernel of a group computes"},
      // Known in 2022 and later.
      {"assert_memory_violation", "", "compute-sanitizer"},
      {"bank_conflict", ""},
      {"buffer_reuse_verbose", ""},
      {"ca_map", ""},
      {"cubin", "", "sass"},
      {"cuda_full", "", "cuda_to_file"},
      {"debug_info", ""},
      {"draw_segmented_fusion", "", "segmented_fusion, or explain(...).to_dot()"},
      {"expr_simplify", ""},
      {"expr_sort", ""},
      {"fusion_args", "", "launch_param"},
      {"fusion_ir_concretized", "", "fusion_ir"},
      {"fusion_ir_graph", "", "fusion_ir"},
      {"fusion_ir_math", "", "fusion_ir"},
      {"fusion_ir_original", "", "partition"},
      {"fusion_ir_preseg", "", "fusion_ir"},
      {"fusion_ir_presched", "", "segmented_fusion"},
      {"halo", ""},
      {"host_ir", "", "plan"},
      {"index_type", "", "scheduler_params"},
      {"kernel_args", "", "launch_param"},
      {"kernel_ir", "", "segmented_fusion"},
      {"loop_rotation", ""},
      {"lower_verbose", ""},
      {"matmul_checks", ""},
      {"occupancy", "", "launch_param"},
      {"parallel_dimensions", ""},
      {"perf_debug_verbose", "", "scheduler_params and launch_param"},
      {"predicate_elimination", ""},
      {"ptxas_verbose", ""},
      {"python_frontend_debug", "", "FusionCache.get().stats()"},
      {"sass_to_file", "", "sass"},
      {"scheduler_verbose", "", "scheduler_params"},
      {"segmenter_logging", "", "segmented_fusion"},
      {"sync_map", ""},
      {"transform_propagator", ""},
  };
  return table;
}

std::span<const OptionWord> disable_words() {
  static constexpr OptionWord table[] = {
      {"cuda", "the CUDA target"},
      {"disk_cache", "the kernel cache on disk"},
      {"fallback", "ATen in place of a fusion that can't be made: the error is raised"},
      {"fma", "contraction of a product and a sum into one rounding, in all kernels; slower"},
      {"host", "the host target"},
      // Known in 2022 and later.
      {"compile_to_sass", ""},
      {"contig_indexing", ""},
      {"expr_simplify", ""},
      {"grouped_grid_welford_outer_opt", ""},
      {"index_hoist", ""},
      {"infer_contiguity", ""},
      {"kernel_reuse", ""},
      {"magic_zero", ""},
      {"nvrtc_caching", "", "disk_cache"},
      {"nvtx", ""},
      {"parallel_compile", ""},
      {"predicate_elimination", ""},
      {"welford_vectorization", ""},
  };
  return table;
}

std::vector<std::string> split_option_list(std::string_view text) {
  std::vector<std::string> items;
  std::size_t at = 0;
  const auto trimmed = [](std::string_view word) {
    const std::size_t first = word.find_first_not_of(" \t"), last = word.find_last_not_of(" \t");
    return first == std::string_view::npos ? std::string() : std::string(word.substr(first, last - first + 1));
  };
  while (at < text.size()) {
    const std::size_t stop = std::min(text.find_first_of(",(", at), text.size());
    std::string word = trimmed(text.substr(at, stop - at));
    at = stop + 1;
    if (stop < text.size() && text[stop] == '(') {
      const std::size_t close = text.find(')', at);
      FXF_CHECK(close != std::string_view::npos, Value, "the parenthesis after '{}' is not closed", word);
      const std::size_t next = text.find_first_not_of(" \t", close + 1);
      FXF_CHECK(next == std::string_view::npos || text[next] == ',', Value, "a comma must follow the arguments of '{}'", word);
      at = next == std::string_view::npos ? text.size() : next + 1;
    }
    if (!word.empty()) items.push_back(std::move(word));
  }
  return items;
}

std::string listed(std::span<const OptionWord> table) {
  std::string text;
  for (const OptionWord& row : table) {
    if (*row.meaning != '\0') text += (text.empty() ? "" : ", ") + std::string(row.word);
  }
  return text;
}

WordList read_words(std::span<const OptionWord> table, const std::string& source, const std::vector<std::string>& items) {
  WordList out;
  for (const std::string& item : items) {
    const OptionWord* found = nullptr;
    for (const OptionWord& row : table) {
      if (item == row.word) found = &row;
    }
    FXF_CHECK(found != nullptr, Value, "{} holds '{}'; there are {}", source, item, listed(table));
    if (*found->meaning != '\0') out.words.insert(item);
    else out.notes.push_back(fmt::format("{}: '{}' means nothing here{}", source, item, *found->instead == '\0' ? std::string() : fmt::format("; {} comes closest", found->instead)));
  }
  return out;
}

}  // namespace fxfuser::executor
