#pragma once
// "Did you mean …": the known word nearest to one that is not known.
#include <string>
#include <vector>

namespace shardlings::lab {

/// Fewest single-letter changes (insert, delete, replace, swap of neighbours) that turn a into b.
int edit_distance(const std::string& a, const std::string& b);
/// The nearest of `known`, or "" where none is near enough to be meant (more than a third of the letters, and
/// more than two, differ).
std::string nearest(const std::string& word, const std::vector<std::string>& known);
/// A sentence such as: there is no verb "chek"; did you mean "check"?
std::string unknown_sentence(const std::string& what, const std::string& word,
                             const std::vector<std::string>& known);

}  // namespace shardlings::lab
