#pragma once
// What the `dump` option prints on the way from a graph to a plan, on the standard output. Which words there are and what each
// prints: option_words.cpp. Each function prints what `options.dump` holds of its phase, and nothing else.

#include "codegen/arch.h"
#include "executor/lower.h"
#include "executor/plan.h"

namespace fxfuser::executor {

void dump_lowered(const LoweredGraph& lowered, const Options& options);
/// A partition as a definition, as it is planned on exact metas of its inputs.
void dump_definition(Session& session, const LoweredGraph& lowered, const partitioner::Partition& partition, const std::vector<ir::TensorMeta>& metas, const Options& options);
/// A group on exact metas; of one that was refused only the graph.
void dump_group(const GroupPlan& group, const codegen::ArchInfo& arch, const Options& options);
void dump_plan(const Plan& plan, const Options& options);

}  // namespace fxfuser::executor
