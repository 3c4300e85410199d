#include "executor/driver_api.h"

#include <dlfcn.h>

#include "partitioner/ir/error.h"

#ifdef FXFUSER_WITH_CUDA
#include <cuda.h>
#endif

namespace fxfuser::executor {

#ifdef FXFUSER_WITH_CUDA
namespace {

struct Table {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDeviceGetCount) device_count = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuDeviceGetName) device_name = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuCtxGetCurrent) context_get = nullptr;
  decltype(&cuCtxSetCurrent) context_set = nullptr;
  decltype(&cuModuleLoadData) module_load = nullptr;
  decltype(&cuModuleUnload) module_unload = nullptr;
  decltype(&cuModuleGetFunction) module_function = nullptr;
  decltype(&cuFuncSetAttribute) function_attribute = nullptr;
  decltype(&cuLaunchKernelEx) launch = nullptr;
  decltype(&cuGraphLaunch) graph_launch = nullptr;
  decltype(&cuStreamIsCapturing) is_capturing = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
  std::string why;
  bool ok = false;
};

template <typename Function>
bool find(void* library, const char* name, Function& function, std::string& why) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) why = std::string("libcuda has no ") + name;
  return function != nullptr;
}

Table load_table() {
  Table t;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    t.why = "no NVIDIA driver (libcuda.so.1 does not load)";
    return t;
  }
  t.ok = find(library, "cuInit", t.init, t.why) && find(library, "cuDeviceGetCount", t.device_count, t.why) && find(library, "cuDeviceGet", t.device_get, t.why) &&
         find(library, "cuDeviceGetAttribute", t.attribute, t.why) && find(library, "cuDeviceGetName", t.device_name, t.why) &&
         find(library, "cuDevicePrimaryCtxRetain", t.retain, t.why) && find(library, "cuCtxGetCurrent", t.context_get, t.why) &&
         find(library, "cuCtxSetCurrent", t.context_set, t.why) && find(library, "cuModuleLoadData", t.module_load, t.why) &&
         find(library, "cuModuleUnload", t.module_unload, t.why) && find(library, "cuModuleGetFunction", t.module_function, t.why) &&
         find(library, "cuFuncSetAttribute", t.function_attribute, t.why) && find(library, "cuLaunchKernelEx", t.launch, t.why) &&
         find(library, "cuGraphLaunch", t.graph_launch, t.why) && find(library, "cuStreamIsCapturing", t.is_capturing, t.why) &&
         find(library, "cuGetErrorString", t.error_string, t.why);
  if (!t.ok) return t;
  int count = 0;
  if (t.init(0) != CUDA_SUCCESS || t.device_count(&count) != CUDA_SUCCESS || count == 0) {
    t.ok = false;
    t.why = "the NVIDIA driver has no usable device";
  }
  return t;
}

const Table& table() {
  static const Table loaded = load_table();
  return loaded;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  table().error_string(result, &text);
  throw_error(ErrorKind::Runtime, fmt::format("{} failed: {}", what, text != nullptr ? text : "unknown error"));
}

}  // namespace

bool Driver::available(std::string* why) {
  if (why != nullptr) *why = table().why;
  return table().ok;
}

DeviceFacts Driver::facts(int index) {
  CUdevice device = 0;
  check(table().device_get(&device, index), "cuDeviceGet");
  const auto attribute = [&](CUdevice_attribute key) {
    int value = 0;
    check(table().attribute(&value, key, device), "cuDeviceGetAttribute");
    return value;
  };
  DeviceFacts out;
  out.sm = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.max_threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  out.registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  out.shared_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out.shared_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  char name[256] = {};
  check(table().device_name(name, sizeof name, device), "cuDeviceGetName");
  out.name = name;
  return out;
}

void Driver::use_device(int index) {
  // The runtime that PyTorch uses works in the primary context, which lives for the whole process once retained.
  static thread_local CUcontext wanted[64] = {};
  FXF_CHECK(index >= 0 && index < 64, Runtime, "device {} is out of range", index);
  if (wanted[index] == nullptr) {
    CUdevice device = 0;
    check(table().device_get(&device, index), "cuDeviceGet");
    check(table().retain(&wanted[index], device), "cuDevicePrimaryCtxRetain");
  }
  CUcontext current = nullptr;
  check(table().context_get(&current), "cuCtxGetCurrent");
  if (current != wanted[index]) check(table().context_set(wanted[index]), "cuCtxSetCurrent");
}

DriverModule Driver::load(const std::string& image) {
  CUmodule module = nullptr;
  check(table().module_load(&module, image.data()), "cuModuleLoadData");
  return module;
}

void Driver::unload(DriverModule module) { table().module_unload(static_cast<CUmodule>(module)); }

DriverFunction Driver::function(DriverModule module, const std::string& name, unsigned shared_bytes, unsigned cluster) {
  CUfunction function = nullptr;
  check(table().module_function(&function, static_cast<CUmodule>(module), name.c_str()), "cuModuleGetFunction");
  if (shared_bytes > 48 * 1024) {
    check(table().function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_bytes)), "cuFuncSetAttribute");
  }
  constexpr unsigned kPortableCluster = 8;
  if (cluster > kPortableCluster) check(table().function_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), "cuFuncSetAttribute");
  return function;
}

void Driver::launch(DriverFunction function, const DriverLaunch& config, DriverStream stream, void* params) {
  CUlaunchConfig launch{};
  launch.gridDimX = config.grid[0], launch.gridDimY = config.grid[1], launch.gridDimZ = config.grid[2];
  launch.blockDimX = config.block[0], launch.blockDimY = config.block[1], launch.blockDimZ = config.block[2];
  launch.sharedMemBytes = config.shared_bytes;
  launch.hStream = static_cast<CUstream>(stream);
  CUlaunchAttribute attributes[2] = {};
  launch.attrs = attributes;
  if (config.cluster > 1) {
    CUlaunchAttribute& cluster = attributes[launch.numAttrs++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = config.cluster;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  }
  if (config.begins_early) {
    CUlaunchAttribute& early = attributes[launch.numAttrs++];
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
  }
  void* arguments[] = {params};
  check(table().launch(&launch, static_cast<CUfunction>(function), arguments, nullptr), "cuLaunchKernelEx");
}

void Driver::launch_graph(DriverGraph graph, DriverStream stream) {
  check(table().graph_launch(static_cast<CUgraphExec>(graph), static_cast<CUstream>(stream)), "cuGraphLaunch");
}

bool Driver::is_capturing(DriverStream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = table().is_capturing(static_cast<CUstream>(stream), &status);
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;  // the legacy stream answers with an error while others capture
}

#else

namespace {
[[noreturn]] void without_cuda() { throw_error(ErrorKind::Runtime, "this build has no CUDA target (FXFUSER_CUDA=off)"); }
}  // namespace

bool Driver::available(std::string* why) {
  if (why != nullptr) *why = "this build has no CUDA target (FXFUSER_CUDA=off)";
  return false;
}
DeviceFacts Driver::facts(int) { without_cuda(); }
void Driver::use_device(int) { without_cuda(); }
DriverModule Driver::load(const std::string&) { without_cuda(); }
void Driver::unload(DriverModule) {}
DriverFunction Driver::function(DriverModule, const std::string&, unsigned, unsigned) { without_cuda(); }
void Driver::launch(DriverFunction, const DriverLaunch&, DriverStream, void*) { without_cuda(); }
void Driver::launch_graph(DriverGraph, DriverStream) { without_cuda(); }
bool Driver::is_capturing(DriverStream) { without_cuda(); }

#endif

}  // namespace fxfuser::executor
