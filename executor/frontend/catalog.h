#pragma once
// `fd.ops`: listed ops, the op table's rows under their own names, and ATen's other functional ops, with the overloads that the
// dispatcher has for each. Signatures are made when they are first asked for.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/frontend/signature.h"


namespace fxfuser::frontend {

class Catalog final : public OpSource {
 public:
  /// `table` must outlive it; rows that are added to the table later are found as well.
  explicit Catalog(const ir::OpTable& table) : table_(table) {}

  const OpSignature* find(std::string_view name) const override;
  const OpSignature& row(std::string_view name) const override;
  /// Listed ops and rows, by name: what `dir(fd.ops)` shows. ATen's others answer to their names as well.
  std::vector<std::string> names() const;

 private:
  using Known = std::map<std::string, std::unique_ptr<OpSignature>, std::less<>>;  // null: there is none

  std::unique_ptr<OpSignature> from_list(std::string_view name) const;
  std::unique_ptr<OpSignature> from_row(std::string_view name) const;
  std::unique_ptr<OpSignature> from_aten(std::string_view name) const;

  const ir::OpTable& table_;
  mutable std::mutex mutex_;
  mutable Known ops_, rows_;
};

}  // namespace fxfuser::frontend
