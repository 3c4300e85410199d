# LibTorch from the interpreter's torch package. find_package(Torch) is a fatal error without a CUDA toolkit, so the few
# libraries in use are imported here. Installed with the CMake package too: the includer sets FXFUSER_VERSION.
set(FXFUSER_TORCH_SERIES "2.11")
if(TARGET fxf_torch)
  return()
endif()

if(FXFUSER_PYTHON)
  set(FXF_PYTHON ${FXFUSER_PYTHON})
elseif(Python_EXECUTABLE)
  set(FXF_PYTHON ${Python_EXECUTABLE})
else()
  find_program(FXF_PYTHON NAMES python3 REQUIRED)
endif()

execute_process(
  COMMAND ${FXF_PYTHON} -c
          "import importlib.util as u, os; s = u.find_spec('torch'); p = os.path.dirname(s.origin); \
v = {}; exec(open(os.path.join(p, 'version.py')).read(), v); print(p + ';' + str(v['__version__']))"
  OUTPUT_VARIABLE FXF_TORCH_FACTS OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE FXF_TORCH_RESULT ERROR_QUIET)
if(NOT FXF_TORCH_RESULT EQUAL 0)
  message(FATAL_ERROR "fxfuser needs torch ${FXFUSER_TORCH_SERIES}.x in ${FXF_PYTHON}, which has no torch: pip install 'torch==${FXFUSER_TORCH_SERIES}.*'")
endif()
list(GET FXF_TORCH_FACTS 0 FXF_TORCH_DIR)
list(GET FXF_TORCH_FACTS 1 FXF_TORCH_VERSION)
string(FIND "${FXF_TORCH_VERSION}" "${FXFUSER_TORCH_SERIES}." FXF_TORCH_AT)
if(NOT FXF_TORCH_AT EQUAL 0)
  message(FATAL_ERROR "fxfuser ${FXFUSER_VERSION} is built for torch ${FXFUSER_TORCH_SERIES}.x, but ${FXF_PYTHON} has torch ${FXF_TORCH_VERSION}.")
endif()

# Imported and global: a target that links them can be exported, and a project that adds this one as a folder sees them.
add_library(fxf_torch_headers INTERFACE IMPORTED GLOBAL)
target_include_directories(fxf_torch_headers SYSTEM INTERFACE ${FXF_TORCH_DIR}/include ${FXF_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(fxf_torch_headers INTERFACE FMT_HEADER_ONLY=1)

function(fxf_import_torch_library target file)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${FXF_TORCH_DIR}/lib/lib${file}.so)
endfunction()
fxf_import_torch_library(fxf_c10 c10)
fxf_import_torch_library(fxf_torch_cpu torch_cpu)
fxf_import_torch_library(fxf_torch_python_library torch_python)

add_library(fxf_torch INTERFACE IMPORTED GLOBAL)
target_link_libraries(fxf_torch INTERFACE fxf_torch_headers fxf_torch_cpu fxf_c10)
add_library(fxf_torch_python INTERFACE IMPORTED GLOBAL)
target_link_libraries(fxf_torch_python INTERFACE fxf_torch_python_library fxf_torch)
message(STATUS "fxfuser: torch ${FXF_TORCH_VERSION} of ${FXF_PYTHON}")
