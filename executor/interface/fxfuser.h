#pragma once
// What a host program (and fxfuser._C) sees of the code-generation library: abstract classes reached through one exported C
// entry, so that a host links this thin interface only and the library is loaded at run time.

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/options.h"
#include "partitioner/capability.h"
#include "partitioner/functionalize.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/partition.h"

namespace fxfuser {

/// A graph as bindings read it: schema-order arguments, constants as hidden inputs, mutations and views by schema.
struct ImportedGraph {
  ir::Graph graph;
  std::vector<partitioner::AliasInfo> alias;  // one a node
};

/// What an Opaque attr of a Callable node holds: a step that only the host can run (a Python function, a submodule).
class HostCallable {
 public:
  virtual ~HostCallable() = default;
  /// Positional arguments in, flattened results out. Called with the caller's dispatch state; takes the GIL itself.
  virtual std::vector<c10::IValue> call(std::vector<c10::IValue> arguments) = 0;
};
// An Opaque attr elsewhere holds a std::shared_ptr<c10::IValue>.

enum class RunStatus : std::uint8_t {
  Ran,
  RunOriginal,  // the caller must run gm(*args): see RunResult::reason
};

struct RunResult {
  RunStatus status = RunStatus::Ran;
  std::string reason;
  std::vector<std::string> warnings;  // FallbackWarning texts, each already told at most once
  std::string nothing_fused;          // the same, of a graph without a group; a host whose compiler chose the graph may leave it out
};

/// Counters since start or the last reset; a cheap snapshot.
struct Stats {
  std::uint64_t calls = 0, plan_hits = 0, plan_misses = 0, compiles = 0, memory_hits = 0, disk_hits = 0;
  std::uint64_t launches_cuda = 0, launches_host = 0, aten_steps = 0, view_steps = 0, fallbacks = 0, graph_replays = 0;
  std::uint64_t missing_kernels = 0;  // not in the cache when a plan that may not compile was made
  // Memory of large CPU tensors: kept without a tensor, blocks asked of the system, blocks that served again.
  std::uint64_t host_kept_bytes = 0, host_fresh_blocks = 0, host_reused_blocks = 0;
  std::map<std::string, std::uint64_t> kernels;        // launches by kernel name (only while recording is on)
  std::map<std::string, std::uint64_t> miss_reasons;
};

/// The lock that a host holds while it calls (Python's GIL): given up around long work and waits, kept for a short launch.
class HostLock {
 public:
  virtual ~HostLock() = default;
  virtual void give_up() = 0;
  virtual void take_back() = 0;
};

/// One imported module: verdicts, plans and report. Callable from many threads.
class Program {
 public:
  virtual ~Program() = default;
  /// `inputs`: the graph's inputs in order, then its constants. Fills `outputs` with the flattened results.
  /// `lock` may be null.
  virtual RunResult run(const executor::Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs, HostLock* lock = nullptr) = 0;
  /// As `run`, for a caller that needs `inputs` no more: a plan that is known lets go of each after its last use. After
  /// RunOriginal they are still there.
  virtual RunResult run_boxed(const executor::Options& options, std::vector<c10::IValue>& inputs, std::vector<c10::IValue>& outputs, HostLock* lock = nullptr) = 0;
  /// Every node by itself through ATen, with the caller's dispatch state: what `run` is compared with, and what a host calls
  /// that has no module of its own when `run` answers RunOriginal.
  virtual void run_aten(std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) = 0;
  /// The report as JSON: nodes with verdicts, partitions, kernels, totals. Metas: exact ones of the inputs, or empty to use
  /// the forecast; nothing is run and no device is needed. `target`: "", "host" or "cuda" (plan for a machine not at hand).
  virtual std::string explain(const executor::Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view target) = 0;
  /// Compiles every kernel that such a call would need into the folder `pack`, without running or loading one: for "host", or for
  /// an architecture ("sm_90", with all parts of it that are planned for apart). Returns how many kernels there are. Throws
  /// Error(Value) for another word, Error(Runtime) when a kernel does not compile or the folder can't be used.
  virtual std::size_t warm(const executor::Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view arch, const std::string& pack) = 0;
};

/// A group of an imported graph as text, for the dump word python_definition; metas are those of the group's inputs.
using GroupPrinter = std::function<std::string(const ir::Graph&, const partitioner::Partition&, const std::vector<ir::TensorMeta>& metas, int number)>;

/// A CUDA graph that the host captured; its memory lives as long as this.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  /// The driver's handle of the executable graph.
  virtual void* executable() const = 0;
};

/// Captures what `body` enqueues on the current stream, on a stream and from a memory pool of the host's own. `body` runs twice,
/// first without a capture. Throws Error(Runtime) when it can't be captured.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;
  virtual std::unique_ptr<CapturedGraph> capture(int device, const std::function<void()>& body) = 0;
};

enum class LogTopic : std::uint8_t { Compile, Cache, Guard };
enum class LogLevel : std::uint8_t { Info, Warning };

/// The host program's log: a line for each compile, each event of the kernel cache and each call that no plan took. Called from
/// any thread, without locks of ours; never on a call that a plan takes.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool wants(LogTopic topic, LogLevel level) = 0;
  /// Drops what nobody wants.
  virtual void write(LogTopic topic, LogLevel level, const std::string& line) noexcept = 0;
};

class Service {
 public:
  virtual ~Service() = default;
  virtual std::shared_ptr<Program> import(ImportedGraph graph) = 0;
  virtual executor::ParsedOptions parse_options(std::string_view executor, const std::map<std::string, ir::Attr>& parameters) = 0;
  virtual std::vector<executor::OptionDoc> option_docs() = 0;
  virtual Stats stats() = 0;
  virtual void reset_stats() = 0;
  virtual void record_kernels(bool on) = 0;
  /// Drops plans and kernels in memory and the once-only warnings; `disk` also empties the cache folder.
  virtual void clear_caches(bool disk) = 0;
  /// Ends background compiles: drops what waits, waits for what runs.
  virtual void finish_background() = 0;
  /// Rows as JSON: op, kind, targets, dtypes (for `python -m fxfuser ops`).
  virtual std::string ops_json() = 0;
  /// The rows themselves; they live as long as the service, register_rows adds to them.
  virtual const ir::OpTable& op_table() = 0;
  /// Row names and targets the default table knows; adds rows or a check at run time.
  virtual void register_rows(std::string_view json, const ir::RowFunctions& functions) = 0;
  virtual void register_check(std::string name, partitioner::Check check) = 0;
  /// JSON: targets with ok/off/broken and why, versions, cache folder; compiles and runs one kernel a target.
  virtual std::string doctor() = 0;
  virtual std::string cache_folder() = 0;
  /// Why there is no cache folder; empty when there is one.
  virtual std::string cache_problem() = 0;
  /// Where bindings found NVRTC (folders).
  virtual void set_nvrtc_path(std::vector<std::string> folders) = 0;
  /// How this host program captures CUDA graphs; without it the option `cuda_graph` runs plainly.
  virtual void set_graph_capture(std::shared_ptr<GraphCapture> capture) = 0;
  /// Where lines for the log go; without it there are none. Once, at load.
  virtual void set_log(std::shared_ptr<LogSink> sink) = 0;
  /// Compiled kernels that `Program::warm` left in a folder, as a second place that is read, never written, after the cache
  /// folder; how many of them fit this library, compiler, processor and device. Throws Error(Value) when none does or the folder
  /// is not safe to load code from.
  virtual std::size_t load_pack(const std::string& folder) = 0;
  /// How this host program writes a group as a definition; without it python_definition prints none of a graph's groups.
  virtual void set_group_printer(GroupPrinter printer) = 0;
  /// Compiles the text of a CUDA kernel for an architecture (90 for sm_90) without loading it; the size of the image in bytes.
  /// Throws Error(Runtime) with the compiler's log.
  virtual std::size_t compile_cuda(const std::string& name, std::string_view text, int sm) = 0;
  /// For tests: CPU tensors take CUDA kernels, planned for `arch` ("toy", a very small machine, or "h200") and run on the CPU
  /// behind the given machine text.
  virtual void emulate_cuda(std::string machine, std::vector<std::string> flags, std::string_view arch) = 0;
};

/// The process's service, made on first use; throws Error(Runtime) listing what was tried when the library can't be loaded.
FXFUSER_API Service& service();
/// Explicit path of the library, before the first service() call.
FXFUSER_API void set_library_path(std::string path);

}  // namespace fxfuser
