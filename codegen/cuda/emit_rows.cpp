// Rows: the innermost axis is reduced. A thread folds each place of its packs apart and these at the end, which keeps the
// chains of additions short and independent. `threads_per_row` threads share a row, `rows_per_block` rows a block. In the register
// tiers each thread holds its packs of the row over all passes; in the multi-pass tier (and in reductions, which have one
// pass) the row is read in each.

#include "codegen/cuda/row_passes.h"

namespace fxfuser::codegen {
namespace {

class Rows {
 public:
  Rows(CudaWriter& writer, KernelSource& source) : w_(writer), source_(source), fusion_(writer.fusion), s_(writer.schedule), passes_(writer.passes), columns_(writer), row_(writer, columns_) {}

  void run() {
    const std::int64_t rows = fusion_.kept_numel();
    const std::int64_t row_blocks = (rows + s_.rows_per_block - 1) / s_.rows_per_block;
    const bool split = row_.is_split();
    std::string block = "fxf_block()";
    if (split) {
      w_.body.linef("const int slab = fxf_block() % {0}, tile = fxf_block() / {0};", w_.params.number("split", s_.split));
      block = "tile";
    }
    w_.body.linef("const int lane = fxf_thread() % {};", s_.threads_per_row);
    w_.body.linef("const {0} row = ({0}){1} * {2} + fxf_thread() / {3};", w_.index(), block, s_.rows_per_block, s_.threads_per_row);
    const std::string count = w_.params.number("rows", rows);
    if (s_.rows_per_block == 1 && rows > 0) w_.body.line("const bool live = true;");
    else w_.body.linef("const bool live = row < {};", count);
    const std::vector<std::size_t> kept = w_.kept_axes();
    if (!kept.empty()) {
      w_.body.linef("const {} here = live ? row : 0;", w_.index());
      w_.decompose("here", kept);
    }
    if (rows == 0) w_.body.line("if (!live) return;");
    row_.declare();
    row_.declare_shift();
    if (split) {
      w_.body.linef("const {0} chunk = ({2} / {1} + split - 1) / split * {1};", w_.index(), row_.vector, s_.shifted ? fmt::format("(end + {})", row_.vector - 1) : "length");
      w_.body.linef("const {0} low = slab * chunk, high = low + chunk < {1} ? low + chunk : {1};", w_.index(), row_.end());
    }
    row_.all_passes([&](const std::vector<const Accumulator*>& states) {
      if (!split) fold_rows(states);
    });
    split ? partials() : row_outputs();
    w_.close_entry(source_, "", row_blocks * s_.split, s_.threads);
  }

 private:
  void fold_rows(const std::vector<const Accumulator*>& states) {
    w_.fold_threads(states, s_.threads_per_row, s_.threads);
    for (const Accumulator* state : states) row_.name_results(*state, fmt::format("acc{}", state->expr));
  }

  void row_outputs() {
    row_.row_values(passes_.count);
    row_.store_row_outputs("live && lane == 0");
  }

  void partials() {
    std::vector<const Accumulator*> states;
    for (const Accumulator& state : passes_.accumulators) states.push_back(&state);
    w_.fold_threads(states, s_.threads_per_row, s_.threads);
    for (std::size_t i = 0; i < states.size(); ++i) {
      w_.body.linef("if (live && lane == 0) fxf_put_partial(({}*)(workspace + {}) + row * split + slab, acc{});", w_.chain_type(*states[i]),
                    w_.params.number(fmt::format("partial{}", states[i]->expr), partial_offset(w_, i)), states[i]->expr);
    }
  }

  CudaWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Schedule& s_;
  const Passes& passes_;
  ColumnFolds columns_;
  RowPasses row_;
};

}  // namespace

void emit_cuda_rows(CudaWriter& writer, KernelSource& source) { Rows(writer, source).run(); }

}  // namespace fxfuser::codegen
