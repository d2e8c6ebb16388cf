#pragma once
// The solution is the single source of an exercise. This turns it into the learner's file (bodies out, stubs
// in) and, with the few lines of a mutant, into a plausible wrong answer. Both are text to text: no file is
// touched here.
#include <stdexcept>
#include <string>
#include <vector>

namespace shardlings::stubgen {

/// A fault in the markers: "path:line: what is wrong". The program prints it and leaves with exit code 2.
class MarkerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One region of a solution: `// SOLUTION BEGIN name` … `// SOLUTION END`.
struct Region {
  std::string name;
  int line = 0;                   ///< of BEGIN, from 1
  std::vector<std::string> body;  ///< the reference code, without the STUB lines
  std::vector<std::string> stub;  ///< what the learner finds instead
};

/// The regions of a solution in the order of the file. `path` is for messages only.
/// Throws MarkerError when markers do not pair up, a name is used twice or is no name, a region has no code
/// or no stub with LAB_TODO, or there is no region at all.
std::vector<Region> regions_of(const std::string& path, const std::string& text);

/// The learner's file: each region becomes `// YOUR CODE BEGIN name`, the stub, `// YOUR CODE END`.
/// What is outside the regions stays as it is. Throws as regions_of.
std::string make_stub(const std::string& path, const std::string& text);

/// The solution with some regions replaced by the mutant's. A mutant file is a comment that tells its story,
/// then
/// `// MUTANT BEGIN region` … `// MUTANT END`, and nothing else. Throws MarkerError on an unknown or empty
/// region, one that equals the solution's, a missing story, or text outside the regions.
std::string make_mutant(const std::string& solution_path, const std::string& solution,
                        const std::string& mutant_path, const std::string& mutant);

}  // namespace shardlings::stubgen
