#include "executor/frontend/composites.h"

#include <algorithm>

#include "executor/frontend/definition.h"
#include "executor/frontend/replay.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

Values list_of(const ir::Attr& attr) { return attr.is_list() ? attr.list() : Values{attr}; }

std::optional<std::int64_t> known_rank(const ir::Attr& tensor, const FactsOf& facts, std::string_view op) {
  FXF_CHECK(tensor.is_value() && facts(tensor.value()).kind == ir::ValueKind::Tensor, Type, "fd.ops.{} takes a Tensor first", op);
  return facts(tensor.value()).rank;
}

std::int64_t rank_for(const ir::Attr& tensor, const FactsOf& facts, std::string_view op) {
  const auto rank = known_rank(tensor, facts, op);
  FXF_CHECK(rank.has_value(), Runtime, "fd.ops.{} needs a tensor whose rank is known before it runs", op);
  return *rank;
}

Values extreme(Replayer& r, std::string_view row, const Values& args) {
  ir::Attr x = args[0];
  if (!args[3].is_none()) x = r.call("to_copy", {{"self", x}, {"dtype", args[3]}});
  return {r.call(row, {{"self", x}, {"dims", list_of(args[1])}, {"keepdim", args[2]}})};
}

ir::Attr cast(Replayer& r, const ir::Attr& x, const ir::Attr& dtype) { return dtype.is_none() ? x : r.call("to_copy", {{"self", x}, {"dtype", dtype}}); }

/// low + random * width, from torch's generator.
Values scaled(Replayer& r, std::string_view random, const Values& args, const ir::Attr& offset, const ir::Attr& width) {
  const ir::Attr dtype = std::holds_alternative<ir::DType>(args[3].v) ? args[3] : args[5];
  const ir::Attr made = r.call(random, {{"size", args[2]}, {"dtype", dtype}});
  return {r.call("add", {{"self", r.call("mul", {{"self", made}, {"other", width}})}, {"other", offset}})};
}

}  // namespace

Values composite_max(Replayer& r, const Values& args) { return extreme(r, "amax", args); }
Values composite_min(Replayer& r, const Values& args) { return extreme(r, "amin", args); }

/// ATen multiplies along one dim at a time: the last one first, so that the others keep their places.
Values composite_prod(Replayer& r, const Values& args) {
  const std::int64_t rank = r.rank(args[0], "prod");
  ir::Sizes dims;
  for (const ir::Attr& item : list_of(args[1])) dims.push_back(item.as_int() < 0 ? item.as_int() + rank : item.as_int());
  std::sort(dims.rbegin(), dims.rend());
  ir::Attr x = args[0];
  for (std::int64_t dim : dims) x = r.call("prod", {{"self", x}, {"dims", dim}, {"keepdim", args[2]}, {"dtype", args[3]}});
  return {x};
}

Values composite_welford(Replayer& r, const Values& args) {
  const Values dims = list_of(args[1]);
  const ir::Attr mean = r.call("mean", {{"self", args[0]}, {"dims", dims}, {"keepdim", false}});
  const ir::Attr kept = r.call("mean", {{"self", args[0]}, {"dims", dims}, {"keepdim", true}});
  const ir::Attr distance = r.call("sub", {{"self", args[0]}, {"other", kept}});
  const ir::Attr squares = r.call("sum", {{"self", r.call("mul", {{"self", distance}, {"other", distance}})}, {"dims", dims}});
  const ir::Attr ones = r.call("ones_like", {{"self", args[0]}, {"dtype", ir::DType::Int64}});
  return {mean, squares, r.call("sum", {{"self", ones}, {"dims", dims}})};
}

Values composite_batch_norm(Replayer& r, const Values& args) {
  const bool channels_last = args[8].as_bool(), training = args[7].as_bool();
  ir::Attr x = args[0];
  if (channels_last) x = r.call("movedim", {{"self", x}, {"source", -1}, {"destination", 1}});
  Named given = {{"input", x}, {"weight", args[1]}, {"bias", args[2]}, {"momentum", args[5]}, {"eps", args[6]}, {"training", training}};
  const bool statistics = !args[3].is_none() || !args[4].is_none();
  if (statistics) {
    given["running_mean"] = args[3];
    given["running_var"] = args[4];
  }
  Values out = r.calls(statistics ? "native_batch_norm" : "native_batch_norm_no_stats", given);
  if (channels_last) out[0] = r.call("movedim", {{"self", out[0]}, {"source", 1}, {"destination", -1}});
  return out;
}

/// ATen wants the condition on the device of the others; a number is made a tensor there.
Values composite_where(Replayer& r, const Values& args) {
  const ir::Attr condition = r.is_tensor(args[0]) ? args[0] : r.call("scalar_tensor", {{"value", args[0]}, {"dtype", ir::DType::Bool}});
  return {r.call("where", {{"condition", condition}, {"self", args[1]}, {"other", args[2]}})};
}

Values composite_squeeze(Replayer& r, const Values& args) {
  return {r.call("squeeze", {{"self", args[0]}, {"dims", list_of(args[2].is_none() ? args[1] : args[2])}})};
}

void check_broadcast(const Values& args, const FactsOf& facts) {
  const auto rank = known_rank(args[0], facts, "broadcast");
  FXF_CHECK(args[1].is_list(), Type, "fd.ops.broadcast: is_broadcast_dim is a list of bool");
  std::int64_t kept = 0;
  for (const ir::Attr& flag : args[1].list()) kept += flag.as_bool() ? 0 : 1;
  FXF_CHECK(!rank || kept == *rank, Runtime, "fd.ops.broadcast: {} dims are not broadcast, the tensor has {}", kept, rank.value_or(0));
}

Values composite_broadcast(Replayer& r, const Values& args) {
  ir::Attr x = args[0];
  for (std::size_t d = 0; d < args[1].list().size(); ++d) {
    if (args[1].list()[d].as_bool()) x = r.call("unsqueeze", {{"self", x}, {"dim", static_cast<std::int64_t>(d)}});
  }
  return {x};
}

void check_broadcast_in_dim(const Values& args, const FactsOf& facts) {
  const std::int64_t rank = rank_for(args[0], facts, "broadcast_in_dim");
  FXF_CHECK(args[1].is_list(), Type, "fd.ops.broadcast_in_dim: output_shape is a list");
  const auto size = static_cast<std::int64_t>(args[1].list().size());
  const ir::Sizes dims = args[2].as_sizes();
  FXF_CHECK(static_cast<std::int64_t>(dims.size()) == rank, Runtime, "fd.ops.broadcast_in_dim: {} broadcast_dims for a tensor of rank {}", dims.size(), rank);
  FXF_CHECK(size >= rank, Runtime, "fd.ops.broadcast_in_dim: The new shape is expected to be greater-then-or-equal to the input: {} dims, the tensor has {}", size, rank);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    FXF_CHECK(dims[i] >= 0 && dims[i] < size, Runtime, "fd.ops.broadcast_in_dim: broadcast dim {} is not in the output of rank {}", dims[i], size);
    FXF_CHECK(i == 0 || dims[i] > dims[i - 1], Runtime, "fd.ops.broadcast_in_dim: Broadcast_dims is not strictly ascending: {} after {}", dims[i], i == 0 ? 0 : dims[i - 1]);
  }
}

Values composite_broadcast_in_dim(Replayer& r, const Values& args) {
  const ir::Sizes dims = args[2].as_sizes();
  ir::AttrList shape = args[1].list();
  ir::Attr x = args[0];
  bool expands = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool kept = std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
    const bool leave = std::holds_alternative<std::int64_t>(shape[d].v) && shape[d].as_int() == -1;
    if (!kept) {
      x = r.call("unsqueeze", {{"self", x}, {"dim", static_cast<std::int64_t>(d)}});
      if (leave) shape[d] = 1;
    }
    expands = expands || !leave;
  }
  return {expands ? r.call("expand", {{"self", x}, {"shape", shape}}) : x};
}

void check_slice(const Values& args, const FactsOf& facts) {
  const std::int64_t rank = rank_for(args[0], facts, "slice");
  for (std::size_t i = 1; i <= 3; ++i) {
    if (i == 3 && args[i].is_none()) continue;
    FXF_CHECK(args[i].is_list() && static_cast<std::int64_t>(args[i].list().size()) == rank, Runtime, "fd.ops.slice: {} needs one number a dim, the tensor has {}",
              i == 1 ? "start_indices" : i == 2 ? "end_indices" : "strides", rank);
  }
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
    const ir::Attr &start = args[1].list()[d], &end = args[2].list()[d];
    FXF_CHECK(start.is_value() || start.as_int() >= 0, Runtime, "fd.ops.slice: start_indices must be greater-than-or-equal-to 0, dim {} has {}", d, start.as_int());
    FXF_CHECK(start.is_value() || end.is_value() || end.as_int() >= start.as_int(), Runtime,
              "fd.ops.slice: end_indices must be greater-than-or-equal-to start_indices, dim {} has {} after {}", d, end.as_int(), start.as_int());
    FXF_CHECK(args[3].is_none() || args[3].list()[d].as_int() >= 1, Runtime, "fd.ops.slice: strides must be positive, dim {} has {}", d, args[3].list()[d].as_int());
  }
}

Values composite_slice(Replayer& r, const Values& args) {
  ir::Attr x = args[0];
  for (std::size_t d = 0; d < args[1].list().size(); ++d) {
    const ir::Attr step = args[3].is_none() ? ir::Attr(1) : args[3].list()[d];
    x = r.call("slice", {{"self", x}, {"dim", static_cast<std::int64_t>(d)}, {"start", args[1].list()[d]}, {"end", args[2].list()[d]}, {"step", step}});
  }
  return {x};
}

ir::Attr with_stride_order(Replayer& r, const ir::Attr& x, const ir::Sizes& order) {
  const std::size_t rank = order.size();
  ir::AttrList slowest_first(rank), back(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto place = static_cast<std::int64_t>(rank) - 1 - order[d];
    slowest_first[static_cast<std::size_t>(place)] = static_cast<std::int64_t>(d);
    back[d] = place;
  }
  const ir::Attr turned = r.call("permute", {{"self", x}, {"dims", slowest_first}});
  const ir::Attr copied = r.call("clone", {{"self", turned}, {"memory_format", ir::MemoryFormat::Contiguous}});
  return r.call("permute", {{"self", copied}, {"dims", back}});
}

Values composite_stride_order(Replayer& r, const Values& args) {
  const ir::Sizes order = args[1].as_sizes();
  check_stride_order(order, static_cast<std::size_t>(r.rank(args[0], "stride_order")));
  return {with_stride_order(r, args[0], order)};
}

Values composite_sizes(Replayer& r, const Values& args) {
  Values out;
  for (std::int64_t d = 0; d < r.rank(args[0], "tensor_sizes"); ++d) out.push_back(r.size(args[0], d));
  return out;
}

Values composite_size(Replayer& r, const Values& args) { return {r.size(args[0], args[1].as_int())}; }

Values composite_iota(Replayer& r, const Values& args) {
  const auto is = [](const ir::Attr& attr, std::int64_t value) { return attr.is_none() || (std::holds_alternative<std::int64_t>(attr.v) && attr.as_int() == value); };
  ir::Attr x = r.call("arange", {{"end", args[0]}, {"dtype", ir::DType::Int64}});
  if (!args[3].is_none() && !(args[3] == ir::Attr(ir::DType::Int64))) x = cast(r, x, args[3]);
  if (!is(args[2], 1)) x = r.call("mul", {{"self", x}, {"other", args[2]}});
  if (!is(args[1], 0)) x = r.call("add", {{"self", x}, {"other", args[1]}});
  return {x};
}

void check_random(const Values& args, const FactsOf&) {
  const bool seeded = (!args[3].is_none() && !std::holds_alternative<ir::DType>(args[3].v)) || !args[4].is_none();
  FXF_CHECK(!seeded, NotImplemented, "random ops draw from torch's generator (torch.manual_seed): rng_seed and rng_offset are not taken");
}

Values composite_uniform(Replayer& r, const Values& args) {
  const bool numbers = args[0].is_number() && args[1].is_number();
  const ir::Attr width = numbers ? ir::Attr(args[1].as_double() - args[0].as_double()) : r.host("operator.sub", {args[1], args[0]});
  return scaled(r, "rand", args, args[0], width);
}

Values composite_normal(Replayer& r, const Values& args) { return scaled(r, "randn", args, args[0], args[1]); }

Values composite_erfcinv(Replayer& r, const Values& args) {
  return {r.call("erfinv", {{"self", r.call("sub", {{"self", 1.0}, {"other", args[0]}})}})};
}

}  // namespace fxfuser::frontend
