#pragma once
// The words of the `dump` option and of the variables that take lists of words, as data: what each does, and those that users of
// 2022 may still have in their scripts and that mean nothing here.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/ir/error.h"

namespace fxfuser::executor {

struct OptionWord {
  const char* word;
  const char* meaning;  // what it prints or switches off; empty: nothing here
  const char* instead = "";  // where it means nothing: what comes closest
};

std::span<const OptionWord> dump_words();
std::span<const OptionWord> disable_words();

struct WordList {
  std::set<std::string> words;     // those that mean something
  std::vector<std::string> notes;  // one line for each that does not
};

/// The items of "a,b(x,y),c": a word may have arguments, which nothing here reads. Throws Error(Value) for an unclosed
/// parenthesis and for a missing comma after one.
std::vector<std::string> split_option_list(std::string_view text);

/// Sorts the items of a list by a table; `source` names it in messages. Throws Error(Value) for an unknown word, listing all.
WordList read_words(std::span<const OptionWord> table, const std::string& source, const std::vector<std::string>& items);

/// "a, b, c": the words of a table that mean something.
std::string listed(std::span<const OptionWord> table);

}  // namespace fxfuser::executor
