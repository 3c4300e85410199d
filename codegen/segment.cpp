#include "codegen/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/segment_groups.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::codegen {
namespace {

constexpr int kMaxRounds = 4;

/// Chains that don't make one kernel go back to their units.
std::vector<std::vector<UnitId>> first_groups(const Units& units, const KernelBuilder& builder) {
  std::vector<std::vector<UnitId>> checked;
  for (std::vector<UnitId>& chain : premerge_chains(units)) {
    if (chain.size() > 1) {
      std::vector<ir::ValueId> stores;
      for (const UnitId id : chain)
        for (const ir::ValueId out : units.graph.node(units.all[id].node).outputs) {
          const std::vector<UnitId>& readers = units.readers[out];
          const bool outside = std::any_of(readers.begin(), readers.end(), [&](UnitId reader) {
            return !std::binary_search(chain.begin(), chain.end(), reader);
          });
          if (outside || units.wanted[out]) stores.push_back(out);
        }
      std::sort(stores.begin(), stores.end());
      if (builder.build(chain, stores).refusal) {
        for (const UnitId id : chain) checked.push_back({id});
        continue;
      }
    }
    checked.push_back(std::move(chain));
  }
  return checked;
}

std::vector<FinalGroup> final_groups(Groups& groups) {
  std::vector<FinalGroup> final;
  for (GroupId id = 0; id < groups.count(); ++id) {
    if (!groups[id].alive) continue;
    FinalGroup group;
    group.built = groups.built(id);
    group.units = groups[id].units;
    group.reads = groups[id].reads;
    group.stores = groups[id].stores;
    if (!group.stores.empty()) final.push_back(std::move(group));
  }
  return final;
}

/// Indices in an order in which the groups can run, the one with the earliest node first where there is a choice.
std::vector<std::size_t> run_order(const Units& units, const std::vector<FinalGroup>& groups) {
  std::vector<std::size_t> stored_by(units.graph.values.size(), groups.size()), home(units.all.size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const UnitId unit : groups[g].units) home[unit] = std::min(home[unit], g);
    for (const ir::ValueId value : groups[g].stores) stored_by[value] = g;
  }
  std::vector<std::set<std::size_t>> after(groups.size()), before(groups.size());
  const auto edge = [&](std::size_t from, std::size_t to) {
    if (from == groups.size() || from == to) return;
    after[from].insert(to);
    before[to].insert(from);
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const ir::ValueId value : groups[g].reads) edge(stored_by[value], g);
    for (const UnitId unit : groups[g].units)
      for (const UnitId from : units.all[unit].after) edge(home[from], g);
  }
  std::set<std::pair<UnitId, std::size_t>> ready;
  std::vector<std::size_t> waiting(groups.size()), order;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if ((waiting[g] = before[g].size()) == 0) ready.insert({groups[g].units.front(), g});
  while (!ready.empty()) {
    const std::size_t g = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(g);
    for (const std::size_t next : after[g])
      if (--waiting[next] == 0) ready.insert({groups[next].units.front(), next});
  }
  FXF_ASSERT(order.size() == groups.size(), "segments have a cycle");
  return order;
}

template <typename T>
bool add_new(std::vector<T>& sorted, T item) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), item);
  if (at != sorted.end() && *at == item) return false;
  sorted.insert(at, item);
  return true;
}

/// Adds what to store, to give a refused unit a simpler address: what its reshapes take apart, contiguous; where that has
/// been tried, every view that it reads through.
void store_for(const Units& units, const Unit& unit, StoredAsIs& stored) {
  bool added = false;
  std::vector<ir::NodeId> views;
  for (const ir::NodeId id : unit.free) {
    const ir::Node& node = units.graph.node(id);
    if (node.row->kind != ir::OpKind::View) continue;
    views.push_back(id);
    if (node.row->op != "reshape") continue;
    const ir::ValueId source = ir::arg(node, "self").value();
    const ir::NodeId producer = units.graph.value(source).producer;
    if (producer == ir::kNoNode || units.wanted[source]) continue;
    const bool view = units.graph.node(producer).row->kind == ir::OpKind::View;
    if (view ? add_new(stored.views, producer) : add_new(stored.plain, source)) added = true;
  }
  if (added) return;
  for (const ir::NodeId view : views) add_new(stored.views, view);
}

struct Attempt {
  Segmented result;
  StoredAsIs stored;  // what may mend a refusal, with what was tried
};

Attempt attempt(const ir::Graph& canonical, const ArchInfo& arch, const ScheduleOptions& options,
                const StoredAsIs& stored) {
  Attempt attempt;
  attempt.stored = stored;
  const Units units = make_units(canonical, stored);
  const KernelBuilder builder(units, arch, options);
  for (const Unit& unit : units.all)
    if (units.graph.node(unit.node).row == nullptr) {
      const ir::Node& node = units.graph.node(unit.node);
      attempt.result.refusal = partitioner::Reason{partitioner::ReasonCode::NoRow, node.name + " = " + node.target};
      return attempt;
    }
  Groups groups(units, builder, first_groups(units, builder));
  merge_groups(units, builder, groups);
  std::vector<FinalGroup> final = final_groups(groups);
  for (const FinalGroup& group : final) {
    if (!group.built.refusal) continue;
    const Unit& unit = units.all[group.units.front()];
    const ir::Node& node = units.graph.node(unit.node);
    if (!attempt.result.refusal)
      attempt.result.refusal = partitioner::Reason{
          group.built.refusal->code, fmt::format("{} = {}: {}", node.name, node.target, group.built.refusal->detail)};
    store_for(units, unit, attempt.stored);
  }
  if (attempt.result.refusal) return attempt;
  copy_cheap_producers(units, builder, final);
  for (const std::size_t g : run_order(units, final)) {
    FinalGroup& group = final[g];
    attempt.result.segments.push_back({builder.nodes_of(group.units), std::move(group.stores), std::move(group.built.fusion),
                                       std::move(group.built.schedule)});
  }
  attempt.result.aliases = units.aliases;
  return attempt;
}

}  // namespace

Segmented segment(const ir::Graph& canonical, const ArchInfo& arch, const ScheduleOptions& options) {
  // A unit that can't be addressed through its views gets them stored first: a copy more, but no refusal.
  StoredAsIs stored;
  for (int round = 0;; ++round) {
    Attempt tried = attempt(canonical, arch, options, stored);
    const bool more = tried.stored.views.size() + tried.stored.plain.size() > stored.views.size() + stored.plain.size();
    if (!tried.result.refusal || !more || round == kMaxRounds) return std::move(tried.result);
    stored = std::move(tried.stored);
  }
}

}  // namespace fxfuser::codegen
