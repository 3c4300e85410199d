# nlohmann_json: an installed package, else the header wheel `nlohmann-json` of the interpreter.
add_library(fxf_json INTERFACE)
find_package(nlohmann_json 3.11 QUIET)
if(nlohmann_json_FOUND)
  target_link_libraries(fxf_json INTERFACE nlohmann_json::nlohmann_json)
else()
  execute_process(
    COMMAND ${FXF_PYTHON} -c "import importlib.util as u, os; s = u.find_spec('nlohmann_json'); print(os.path.dirname(s.origin) if s else '')"
    OUTPUT_VARIABLE FXF_JSON_PACKAGE OUTPUT_STRIP_TRAILING_WHITESPACE)
  # Not cached: a build in an isolated environment finds the package in another temporary folder each time.
  find_path(FXF_JSON_INCLUDE nlohmann/json.hpp PATHS ${FXF_JSON_PACKAGE}/include NO_CACHE)
  if(NOT FXF_JSON_INCLUDE)
    message(FATAL_ERROR "nlohmann/json.hpp was not found: pip install nlohmann-json, or apt-get install nlohmann-json3-dev")
  endif()
  target_include_directories(fxf_json SYSTEM INTERFACE ${FXF_JSON_INCLUDE})
endif()
