#include "bindings/define_tensor.h"

#include <pybind11/stl.h>

#include <map>

#include "bindings/attr_convert.h"
#include "bindings/frontend_handles.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

using frontend::TensorRecord;
using Given = std::map<std::string, py::object>;

constexpr const char* kForms =
    "define_tensor takes (ndims, dtype, is_cpu), (symbolic_sizes, contiguous, dtype, is_cpu), (sizes, strides, dtype, is_cpu) or (shape, contiguity, dtype, is_cpu, "
    "stride_order)";

bool is_sequence(py::handle object) { return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr()); }

bool holds_flags(py::handle list) {
  bool flags = false;
  for (auto item : py::reinterpret_borrow<py::sequence>(list)) flags = flags || PyBool_Check(item.ptr()) || item.is_none();
  return flags;
}

/// Positional arguments under their names: which names depends on what they are.
Given named(const py::args& args, const py::kwargs& kwargs) {
  Given out;
  for (auto item : kwargs) out[py::cast<std::string>(item.first)] = py::reinterpret_borrow<py::object>(item.second);
  std::vector<std::string> names = {"ndims", "dtype", "is_cpu"};
  const bool lists = args.size() > 0 && is_sequence(args[0]);
  if (lists) {
    const bool second_is_list = args.size() > 1 && is_sequence(args[1]);
    const bool strides = out.count("strides") > 0 || (second_is_list && py::len(args[1]) > 0 && !holds_flags(args[1])) || (second_is_list && py::len(args[1]) == 0 && py::len(args[0]) == 0);
    names = strides ? std::vector<std::string>{"sizes", "strides", "dtype", "is_cpu"} : std::vector<std::string>{"shape", "contiguity", "dtype", "is_cpu", "stride_order"};
  }
  FXF_CHECK(args.size() <= names.size(), Type, "{}; {} were given by position", kForms, args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    FXF_CHECK(out.emplace(names[i], args[i]).second, Type, "define_tensor: '{}' is given twice", names[i]);
  }
  // 2022's names for the same.
  for (const auto& [old, now] : {std::pair<const char*, const char*>{"symbolic_sizes", "shape"}, {"contiguous", "contiguity"}}) {
    if (auto found = out.extract(old)) {
      FXF_CHECK(out.count(now) == 0, Type, "define_tensor: '{}' and '{}' are both given", old, now);
      found.key() = now;
      out.insert(std::move(found));
    }
  }
  return out;
}

py::object take(Given& given, const char* name) {
  auto found = given.extract(name);
  return found ? std::move(found.mapped()) : py::object(py::none());
}

std::vector<std::int64_t> numbers(py::handle list, const char* name) {
  FXF_CHECK(is_sequence(list), Type, "define_tensor: {} is a list of ints", name);
  std::vector<std::int64_t> out;
  for (auto item : py::reinterpret_borrow<py::sequence>(list)) {
    FXF_CHECK(PyLong_Check(item.ptr()) && !PyBool_Check(item.ptr()), Type, "define_tensor: {} is a list of ints", name);
    out.push_back(py::cast<std::int64_t>(item));
  }
  return out;
}

std::vector<std::int8_t> flags(py::handle object, std::size_t rank) {
  if (object.is_none()) return std::vector<std::int8_t>(rank, 0);
  if (PyBool_Check(object.ptr())) return std::vector<std::int8_t>(rank, object.ptr() == Py_True ? 1 : 0);
  FXF_CHECK(is_sequence(object), Type, "define_tensor: contiguity is a bool or a list of True, False and None");
  std::vector<std::int8_t> out;
  for (auto item : py::reinterpret_borrow<py::sequence>(object)) {
    FXF_CHECK(PyBool_Check(item.ptr()) || item.is_none(), Type, "define_tensor: contiguity is a bool or a list of True, False and None");
    out.push_back(item.is_none() ? std::int8_t{-1} : item.ptr() == Py_True ? std::int8_t{1} : std::int8_t{0});
  }
  return out;
}

void read_concrete(TensorRecord& record, const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  FXF_CHECK(sizes.size() == strides.size(), Runtime, "define_tensor: The size of stride has to match the size of sizes: {} sizes, {} strides", sizes.size(), strides.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    FXF_CHECK(sizes[d] > 0, Runtime, "define_tensor: The value of each size must be greater than 0, dim {} has {}", d, sizes[d]);
  }
  for (std::int64_t size : sizes) record.sizes.push_back(record.static_sizes || size == 1 ? size : -1);
  for (bool flag : compute_contiguity(sizes, strides)) record.contiguity.push_back(flag ? 1 : 0);
}

}  // namespace

TensorRecord read_tensor_definition(const py::args& args, const py::kwargs& kwargs) {
  Given given = named(args, kwargs);
  TensorRecord record;
  if (const py::object dtype = take(given, "dtype"); !dtype.is_none()) record.dtype = to_data_type(dtype).value_or(ir::DType::Other);
  if (const py::object cpu = take(given, "is_cpu"); !cpu.is_none()) record.is_cpu = py::cast<bool>(cpu);
  if (const py::object fixed = take(given, "static_sizes"); !fixed.is_none()) record.static_sizes = py::cast<bool>(fixed);
  if (const py::object order = take(given, "stride_order"); !order.is_none()) record.stride_order = numbers(order, "stride_order");
  const py::object ndims = take(given, "ndims"), sizes = take(given, "sizes"), strides = take(given, "strides"), shape = take(given, "shape");
  const py::object contiguity = take(given, "contiguity");
  FXF_CHECK(given.empty(), Type, "{}; it has no argument '{}'", kForms, given.begin()->first);
  const int forms = (ndims.is_none() ? 0 : 1) + (sizes.is_none() ? 0 : 1) + (shape.is_none() ? 0 : 1);
  FXF_CHECK(forms == 1 && sizes.is_none() == strides.is_none() && (contiguity.is_none() || !shape.is_none()), Type, "{}", kForms);
  if (!ndims.is_none()) {
    FXF_CHECK(PyLong_Check(ndims.ptr()) && !PyBool_Check(ndims.ptr()), Type, "{}; ndims is an int", kForms);
    const auto rank = py::cast<std::int64_t>(ndims);
    FXF_CHECK(rank >= 0, Runtime, "define_tensor: ndims is {}", rank);
    record.sizes.assign(static_cast<std::size_t>(rank), -1);
    record.contiguity.assign(static_cast<std::size_t>(rank), 0);
  } else if (!sizes.is_none()) {
    read_concrete(record, numbers(sizes, "sizes"), numbers(strides, "strides"));
  } else {
    record.sizes = numbers(shape, "symbolic_sizes");
    record.contiguity = flags(contiguity, record.sizes.size());
  }
  return record;
}

TensorRecord describe_tensor(py::handle tensor, bool static_sizes) {
  const auto meta = meta_of(tensor);
  FXF_CHECK(meta.has_value(), Type, "from_pytorch takes a strided torch.Tensor, not {}", std::string(py::str(py::type::of(tensor).attr("__name__"))));
  FXF_CHECK(meta->dtype != ir::DType::Other, Type, "from_pytorch: the tensor's dtype has no DataType");
  TensorRecord record;
  record.dtype = meta->dtype;
  record.is_cpu = meta->sizes.empty() && meta->device.kind == ir::DeviceKind::Cpu;
  record.static_sizes = static_sizes;
  for (std::int64_t size : meta->sizes) record.sizes.push_back(static_sizes || size == 1 ? size : -1);
  for (bool flag : compute_contiguity(meta->sizes, meta->strides)) record.contiguity.push_back(flag ? 1 : 0);
  return record;
}

std::vector<bool> compute_contiguity(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  FXF_CHECK(sizes.size() == strides.size(), Runtime, "compute_contiguity: Sizes and strides must have the same number of dimensions: {} and {}", sizes.size(), strides.size());
  std::vector<bool> out(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) out[d] = strides[d] == (d + 1 == sizes.size() ? 1 : strides[d + 1] * sizes[d + 1]);
  return out;
}

}  // namespace fxfuser::bindings
