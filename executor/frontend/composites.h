#pragma once
// The frontend's ops that are several rows each. Arguments come in the order of the signature in op_list.cpp.

#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

using Values = std::vector<ir::Attr>;

Values composite_max(Replayer& r, const Values& args);
Values composite_min(Replayer& r, const Values& args);
Values composite_prod(Replayer& r, const Values& args);
Values composite_welford(Replayer& r, const Values& args);
Values composite_batch_norm(Replayer& r, const Values& args);
Values composite_where(Replayer& r, const Values& args);
Values composite_squeeze(Replayer& r, const Values& args);
Values composite_broadcast(Replayer& r, const Values& args);
Values composite_broadcast_in_dim(Replayer& r, const Values& args);
Values composite_slice(Replayer& r, const Values& args);
Values composite_stride_order(Replayer& r, const Values& args);
Values composite_sizes(Replayer& r, const Values& args);
Values composite_size(Replayer& r, const Values& args);
Values composite_iota(Replayer& r, const Values& args);
Values composite_uniform(Replayer& r, const Values& args);
Values composite_normal(Replayer& r, const Values& args);
Values composite_erfcinv(Replayer& r, const Values& args);

void check_broadcast(const Values& args, const FactsOf& facts);
void check_broadcast_in_dim(const Values& args, const FactsOf& facts);
void check_slice(const Values& args, const FactsOf& facts);
void check_random(const Values& args, const FactsOf& facts);

}  // namespace fxfuser::frontend
