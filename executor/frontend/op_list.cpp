#include "executor/frontend/op_list.h"

#include "executor/frontend/composites.h"

namespace fxfuser::frontend {

const std::vector<ListedOp>& listed_ops() {
  using R = RankRule;
  static const std::vector<ListedOp> table = {
      // Names and arguments of the frontend for single rows.
      {"sum", "arg, axes|dims, keepdim=False, dtype=None", "sum", "dims=axes", R::Infer},
      {"mean", "arg, axes|dims, keepdim=False, dtype=None", "mean", "dims=axes", R::Infer},
      {"var", "arg, axes|dims, correction=1, keepdim=False", "var", "dims=axes", R::Reduce, "", "same"},
      {"var_mean", "arg, axes|dims, correction=1, keepdim=False", "var_mean", "dims=axes", R::Reduce, "", "same"},
      {"add_alpha", "arg, other, alpha", "add", "", R::Infer, "", "", true},
      {"sub_alpha", "arg, other, alpha", "sub", "", R::Infer, "", "", true},
      {"truediv", "arg, other", "div", "", R::Infer, "", "", true, nullptr, 1, nullptr, "Integers are divided as floats."},
      {"mod", "arg, other", "fmod", "", R::Infer, "", "", true, nullptr, 1, nullptr, "The remainder has the sign of arg, as in C."},
      {"view", "arg, original_shape, new_shape", "aten.reshape.default", "_=original_shape shape=new_shape", R::Length, "new_shape", "same"},
      {"reshape", "arg, new_shape", "aten.reshape.default", "shape=new_shape", R::Length, "new_shape", "same"},
      {"permute", "arg, dims", "aten.permute.default", "", R::Same, "", "same"},
      {"expand", "arg, shape|new_shape", "aten.expand.default", "", R::Length, "shape", "same"},
      {"set", "arg", "clone", "", R::Same, "", "same"},
      {"segment_set", "arg", "clone", "", R::Same, "", "same"},
      {"cast", "arg, dtype", "to_copy", "", R::Same, "", "param"},
      {"full", "shape|size, fill_value, dtype", "full", "value=fill_value", R::Length, "shape", "param"},
      {"gather", "arg, index, dim", "aten.gather.default", "", R::Same, "", "same"},
      {"take_along_axis", "arg, index, dim", "aten.take_along_dim.default", "indices=index", R::Same, "", "same"},
      {"index_select", "arg, index, dim", "aten.index_select.default", "", R::Same, "", "same"},
      {"select", "arg, index, dim", "aten.select.int", "", R::Less, "", "same"},
      {"scatter", "arg, index, src, dim", "aten.scatter.src", "", R::Same, "", "same"},
      {"embedding_fwd", "input, weight", "aten.embedding.default", "indices=input"},
      {"cumsum", "arg, dim", "aten.cumsum.default", "", R::Same},
      {"cumprod", "arg, dim", "aten.cumprod.default", "", R::Same},
      {"cummax", "arg, dim", "aten.cummax.default", "", R::Same, "", "same int"},
      {"cummin", "arg, dim", "aten.cummin.default", "", R::Same, "", "same int"},
      {"topk", "arg, k, dim=-1, largest=True, sorted=False", "aten.topk.default", "", R::Same, "", "same int"},
      {"argsort", "arg, dim=-1, descending=False, stable=False", "aten.argsort.stable", "", R::Same, "", "int"},
      {"triu", "arg, diagonal=0", "aten.triu.default", "", R::Same, "", "same"},
      {"tril", "arg, diagonal=0", "aten.tril.default", "", R::Same, "", "same"},
      {"cat", "tensors, dim=0, manual_padding=False", "aten.cat.default", "", R::Same, "", "same"},
      {"pad", "arg, pad_widths, value=None", "aten.constant_pad_nd.default", "pad=pad_widths", R::Same, "", "same", false, nullptr, 1, nullptr,
       "Widths before and after, last dim first; filled with zeros unless a value is given."},
      {"rand_like", "arg", "aten.rand_like.default", "", R::Same, "", "same"},
      {"randn_like", "arg", "aten.randn_like.default", "", R::Same, "", "same"},
      // Composite rows that promote as pointwise ones do.
      {"where", "condition, x, y", "where", "self=x other=y", R::Infer, "", "", true, composite_where, 1, nullptr, "", "select_where"},
      {"pow", "arg, exponent", "pow", "", R::Infer, "", "", true, nullptr, 1, nullptr, "", "pow_real"},
      {"clamp", "arg, min=None, max=None", "clamp", "", R::Infer, "", "", true, nullptr, 1, nullptr, "", "clamp_min"},
      // Several rows each. (composites.cpp)
      {"max", "arg, axes|dims, keepdim=False, dtype=None", "amax", "dims=axes", R::Reduce, "", "param", false, composite_max},
      {"min", "arg, axes|dims, keepdim=False, dtype=None", "amin", "dims=axes", R::Reduce, "", "param", false, composite_min},
      {"prod", "arg, axes|dims, keepdim=False, dtype=None", "prod", "dims=axes", R::Infer, "", "", false, composite_prod},
      {"welford", "arg, dims|axes", "sum", "", R::Reduce, "", "same same int", true, composite_welford, 3, nullptr, "The mean, the sum of squared distances to it, and the count."},
      {"batch_norm", "arg, weight, bias, running_mean, running_var, momentum, eps, training, channels_last=False", "", "", R::Norm, "", "same", false, composite_batch_norm, 3,
       nullptr, "The result, the mean and the reciprocal of the standard deviation; with training and running statistics, these are updated."},
      {"squeeze", "arg, original_shape|dims, dim=None", "squeeze", "dims=original_shape", R::Unknown, "", "same", false, composite_squeeze, 1, nullptr, "squeeze(arg, original_shape, dim), or squeeze(arg, dims)."},
      {"broadcast", "arg, is_broadcast_dim", "", "", R::Length, "is_broadcast_dim", "same", false, composite_broadcast, 1, check_broadcast, "New dims of size 1 where the list is True."},
      {"broadcast_in_dim", "arg, output_shape|shape, broadcast_dims", "broadcast_in_dim", "shape=output_shape dims=broadcast_dims", R::Length, "output_shape", "same", false, composite_broadcast_in_dim, 1, check_broadcast_in_dim,
       "Dim i of arg becomes dim broadcast_dims[i] of the result; -1 in the shape leaves a size as it is."},
      {"slice", "arg, start_indices, end_indices, strides=None, manual_normalization=False", "", "", R::Same, "", "same", false, composite_slice, 1, check_slice},
      {"stride_order", "arg, stride_order", "", "", R::Same, "", "same", false, composite_stride_order, 1, nullptr, "A copy whose dims lie in memory in this order, 0 the fastest."},
      {"tensor_sizes", "arg", "", "", R::Sizes, "", "int", false, composite_sizes, 0, nullptr, "A list with the size of each dim."},
      {"shape", "arg", "", "", R::Sizes, "", "int", false, composite_sizes, 0, nullptr, "A list with the size of each dim."},
      {"size", "arg, dim", "", "", R::Sizes, "", "int", false, composite_size},
      {"iota", "length, start=0, step=1, dtype=Int", "", "", R::Unknown, "", "param", false, composite_iota},
      {"uniform", "minval, maxval, shape, rng_seed=None, rng_offset=None, dtype=Float", "", "", R::Length, "shape", "param", false, composite_uniform, 1, check_random},
      {"normal", "mean, std, shape, rng_seed=None, rng_offset=None, dtype=Float", "", "", R::Length, "shape", "param", false, composite_normal, 1, check_random},
      {"erfcinv", "arg", "erfinv", "", R::Infer, "", "", true, composite_erfcinv},
  };
  return table;
}

const std::vector<ScalarOp>& scalar_ops() {
  static const std::vector<ScalarOp> table = {
      {"add", "operator.add", 2},          {"sub", "operator.sub", 2},          {"mul", "operator.mul", 2},         {"div", "operator.truediv", 2},
      {"truediv", "operator.truediv", 2},  {"pow", "operator.pow", 2},          {"remainder", "operator.mod", 2},   {"fmod", "torch.fmod", 2},
      {"mod", "torch.fmod", 2},            {"atan2", "torch.atan2", 2},         {"eq", "operator.eq", 2},           {"ne", "operator.ne", 2},
      {"lt", "operator.lt", 2},            {"le", "operator.le", 2},            {"gt", "operator.gt", 2},           {"ge", "operator.ge", 2},
      {"bitwise_and", "operator.and_", 2}, {"bitwise_or", "operator.or_", 2},   {"bitwise_xor", "operator.xor", 2}, {"bitwise_left_shift", "operator.lshift", 2},
      {"bitwise_right_shift", "operator.rshift", 2}, {"maximum", "torch.sym_max", 2}, {"minimum", "torch.sym_min", 2}, {"where", "torch.sym_ite", 3},
      {"neg", "operator.neg", 1},          {"abs", "operator.abs", 1},          {"set", "operator.pos", 1},         {"logical_not", "operator.not_", 1},
      {"bitwise_not", "operator.invert", 1}, {"cast", "torch.to", 2},           {"relu", "torch.relu", 1},          {"sign", "torch.sign", 1},
      {"acos", "torch.acos", 1},           {"acosh", "torch.acosh", 1},         {"asin", "torch.asin", 1},          {"asinh", "torch.asinh", 1},
      {"atan", "torch.atan", 1},           {"atanh", "torch.atanh", 1},         {"ceil", "torch.ceil", 1},          {"cos", "torch.cos", 1},
      {"cosh", "torch.cosh", 1},           {"erf", "torch.erf", 1},             {"erfc", "torch.erfc", 1},          {"exp", "torch.exp", 1},
      {"exp2", "torch.exp2", 1},           {"expm1", "torch.expm1", 1},         {"floor", "torch.floor", 1},        {"frac", "torch.frac", 1},
      {"lgamma", "torch.lgamma", 1},       {"log", "torch.log", 1},             {"log10", "torch.log10", 1},        {"log1p", "torch.log1p", 1},
      {"log2", "torch.log2", 1},           {"reciprocal", "torch.reciprocal", 1}, {"round", "torch.round", 1},      {"rsqrt", "torch.rsqrt", 1},
      {"sigmoid", "torch.sigmoid", 1},     {"silu", "torch.silu", 1},           {"sin", "torch.sin", 1},            {"sinh", "torch.sinh", 1},
      {"sqrt", "torch.sqrt", 1},           {"tan", "torch.tan", 1},             {"tanh", "torch.tanh", 1},          {"trunc", "torch.trunc", 1},
      {"isfinite", "torch.isfinite", 1},   {"isinf", "torch.isinf", 1},         {"isnan", "torch.isnan", 1},        {"isneginf", "torch.isneginf", 1},
      {"isposinf", "torch.isposinf", 1},   {"isreal", "torch.isreal", 1},       {"real", "operator.pos", 1},
  };
  return table;
}

}  // namespace fxfuser::frontend
