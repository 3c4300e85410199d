// A program that links the interface alone: where it looks for the library, what it refuses, and that it loads it once.

#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "executor/interface/fxfuser.h"
#include "tests/cpp/catch.h"

namespace {

/// What `work` returns or throws, in a process of its own: the library is loaded once a process.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    unsetenv("FXFUSER_LIBRARY");
    std::string said;
    try {
      said = work();
    } catch (const fxfuser::Error& error) {
      said = error.what();
    }
    const ssize_t count = write(ends[1], said.data(), said.size());
    _exit(count == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return text;
}

std::string load() { return fxfuser::service().op_table().find("add") != nullptr ? "loaded" : "no table"; }

std::string load_from(const std::string& path) {
  return in_child([&] {
    setenv("FXFUSER_LIBRARY", path.c_str(), 1);
    return load();
  });
}

const std::string kLibrary = FXF_LIBRARY;
const std::string kFakes = FXF_FAKES;
constexpr const char* kTried = "the code-generation library could not be loaded; tried:";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("without the library one error lists what was tried, absolute paths only", "[loading]") {
  const std::string said = in_child(load);
  INFO(said);
  CHECK(said.starts_with(kTried));
  std::istringstream lines(said);
  std::string line;
  std::getline(lines, line);
  std::size_t count = 0;
  for (; std::getline(lines, line); ++count) CHECK(line.starts_with("  /"));
  CHECK(count >= 2);
  CHECK(has(said, std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/libfxfuser_codegen.so: "));
}

TEST_CASE("the current folder is never searched", "[loading]") {
  const std::string said = in_child([] {
    std::filesystem::current_path(std::filesystem::path(kLibrary).parent_path());
    setenv("LD_LIBRARY_PATH", ":.", 1);
    return load();
  });
  INFO(said);
  CHECK(said.starts_with(kTried));
  const std::string named = in_child([] {
    std::filesystem::current_path(std::filesystem::path(kLibrary).parent_path());
    setenv("FXFUSER_LIBRARY", "libfxfuser_codegen.so", 1);
    return load();
  });
  INFO(named);
  CHECK(has(named, "libfxfuser_codegen.so: not a path with a folder (the current folder is never searched)"));
}

TEST_CASE("FXFUSER_LIBRARY names the library", "[loading]") { CHECK(load_from(kLibrary) == "loaded"); }

TEST_CASE("a library of another interface, torch or ABI is refused with both versions", "[loading]") {
  const std::string interface = load_from(kFakes + "/libfxf_other_interface.so");
  INFO(interface);
  CHECK(interface.starts_with(kTried));
  CHECK(has(interface, "has interface fxfuser-0.0.9/1, this program has fxfuser-"));
  const std::string torch = load_from(kFakes + "/libfxf_other_torch.so");
  INFO(torch);
  CHECK(has(torch, "was built for torch 2.10.0, this program for 2.11"));
  const std::string abi = load_from(kFakes + "/libfxf_other_abi.so");
  INFO(abi);
  CHECK(has(abi, "was built with _GLIBCXX_USE_CXX11_ABI=0, this program with _GLIBCXX_USE_CXX11_ABI=1"));
}

TEST_CASE("what is no library of ours is refused", "[loading]") {
  const std::string foreign = load_from(kFakes + "/libfxf_foreign.so");
  INFO(foreign);
  CHECK(has(foreign, "is no fxfuser library (no fxfuser_codegen_entry)"));
  const auto text = std::filesystem::temp_directory_path() / ("fxfuser-text-" + std::to_string(getpid()) + ".so");
  std::ofstream(text) << "not a library";
  const std::string said = load_from(text.string());
  std::filesystem::remove(text);
  INFO(said);
  CHECK((has(said, "file too short") || has(said, "invalid ELF header")));
  CHECK(has(load_from("/nowhere/libfxfuser_codegen.so"), "/nowhere/libfxfuser_codegen.so: cannot open shared object file"));
}

TEST_CASE("a refused candidate gives way to the next, an explicit path comes first", "[loading]") {
  CHECK(in_child([] {
          fxfuser::set_library_path(kFakes + "/libfxf_other_torch.so");
          setenv("FXFUSER_LIBRARY", kLibrary.c_str(), 1);
          return load();
        }) == "loaded");
  CHECK(in_child([] {
          fxfuser::set_library_path(kLibrary);
          setenv("FXFUSER_LIBRARY", "/nowhere/lib.so", 1);
          return load();
        }) == "loaded");
}

TEST_CASE("a failure is not for good: once the library is there it is loaded", "[loading]") {
  CHECK(in_child([] {
          try {
            return "too early: " + load();
          } catch (const fxfuser::Error&) {
            fxfuser::set_library_path(kLibrary);
            return load();
          }
        }) == "loaded");
}

TEST_CASE("eight threads at once get one service, and it runs a graph", "[loading]") {
  CHECK(in_child([] {
          fxfuser::set_library_path(kLibrary);
          std::array<fxfuser::Service*, 8> seen{};
          std::vector<std::thread> threads;
          for (fxfuser::Service*& mine : seen) threads.emplace_back([&mine] { mine = &fxfuser::service(); });
          for (std::thread& thread : threads) thread.join();
          if (std::set<fxfuser::Service*>(seen.begin(), seen.end()).size() != 1) return std::string("more than one service");
          fxfuser::ImportedGraph imported;
          const auto x = imported.graph.add_input("x", fxfuser::ir::contiguous(fxfuser::ir::DType::Float32, {}, {8}));
          fxfuser::ir::Node node;
          node.name = "s";
          node.target = "aten.sigmoid.default";
          node.args = {fxfuser::ir::ValueRef{x}};
          imported.alias.push_back({{}, {-1}});
          const auto out = imported.graph.nodes[imported.graph.add_node(std::move(node), 1)].outputs[0];
          imported.graph.outputs = {fxfuser::ir::ValueRef{out}};
          const at::Tensor input = at::randn({8});
          const std::vector<c10::IValue> inputs{input};
          std::vector<c10::IValue> outputs;
          const auto program = seen[0]->import(std::move(imported));
          program->run(seen[0]->parse_options("aten", {}).options, inputs, outputs);
          return std::string(at::equal(outputs.at(0).toTensor(), input.sigmoid()) ? "right" : "wrong");
        }) == "right");
}
