#pragma once
// Words of the text form that the printer and the parser share.

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fxfuser::ir {

// In the order of the enumerations.
inline constexpr std::array<std::string_view, 2> kLayoutWords{"layout.strided", "layout.other"};
inline constexpr std::array<std::string_view, 4> kMemoryFormatWords{"memory_format.contiguous", "memory_format.preserve",
                                                                    "memory_format.channels_last",
                                                                    "memory_format.channels_last_3d"};

/// The name that a node has unless the text says another: its one output's, or what `n.0`, `n.1`, ... share.
std::string implied_node_name(const std::vector<std::string>& outputs);

}  // namespace fxfuser::ir
