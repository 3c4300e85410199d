#pragma once
// Why a node, a partition or a fusion was not taken: a code and the fact behind it. The return value of every "can I",
// never a log line beside a bool.

#include <optional>
#include <string>
#include <string_view>

namespace fxfuser::partitioner {

enum class ReasonCode {
  NoRow,             // the table does not name the target
  DType,             // a dtype that the row does not take, or a cast pair outside the table
  Device,            // a device without a target, or several devices
  Layout,            // sparse, quantised, complex views, ...
  Argument,          // an argument value that the row does not cover
  Denied,            // skip_ops or the capability policy
  MetadataOnly,      // a group (or border) of views only: launching a kernel would cost more than it saves
  SingleOp,          // allow_single_op_fusion=False
  NotProvablySafe,   // an in-place write that could not be made functional
  Shape,             // no common refinement of dims, a data-dependent size, ...
  NoSchedule,        // no scheduler takes the fusion
  CompileFailed,     // the compiler refused the kernel text
  NoCompiler,        // no host compiler / NVRTC / driver
  Empty,             // nothing to compute
  Other,
};

struct Reason {
  ReasonCode code = ReasonCode::Other;
  std::string detail;  // the fact: "int8 -> complex64 is not in the cast table"
};

std::string_view name(ReasonCode code);
std::string to_string(const Reason& reason);

/// A verdict: taken, or why not.
struct Support {
  std::optional<Reason> refusal;
  bool ok() const { return !refusal.has_value(); }
  static Support yes() { return {}; }
  static Support no(ReasonCode code, std::string detail) { return {Reason{code, std::move(detail)}}; }
};

}  // namespace fxfuser::partitioner
