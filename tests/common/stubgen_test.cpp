// The stub generator: what it makes, and that it refuses what would let a stub or a mutant rot.
#include "stubgen/markers.hpp"

#include <gtest/gtest.h>

namespace shardlings::stubgen {
namespace {

const std::string kSolution = R"(// head
int f(int x) {
  // SOLUTION BEGIN twice
  return 2 * x;
  // SOLUTION STUB (void)x;
  // SOLUTION STUB   LAB_TODO("double it");
  // SOLUTION END
}
// SOLUTION BEGIN g
int g() { return 1; }
// SOLUTION STUB int g() { LAB_TODO("one"); }
// SOLUTION END
)";

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const MarkerError& error) {
    return error.what();
  }
  return "no error";
}
std::string stub_error(const std::string& text) {
  return error_of([&] { make_stub("s.hpp", text); });
}
std::string mutant_error(const std::string& text) {
  return error_of([&] { make_mutant("s.hpp", kSolution, "m.hpp", text); });
}

// Rejects: losing the indentation, keeping a line of the solution, changing what is outside the regions.
TEST(Stubgen, StubReplacesTheBodies) {
  EXPECT_EQ(make_stub("s.hpp", kSolution), R"(// head
int f(int x) {
  // YOUR CODE BEGIN twice
  (void)x;
    LAB_TODO("double it");
  // YOUR CODE END
}
// YOUR CODE BEGIN g
int g() { LAB_TODO("one"); }
// YOUR CODE END
)");
}

// Rejects: a generator that lets a solution through in which a stub could pass or the solution leak.
TEST(Stubgen, RefusesBrokenMarkers) {
  const std::string todo = "// SOLUTION STUB LAB_TODO(\"x\");\n";
  EXPECT_EQ(stub_error("int x;\n"), "s.hpp:1: no '// SOLUTION BEGIN' region in this file");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN a\nint x;\n" + todo),
            "s.hpp:1: region 'a' has no '// SOLUTION END'");
  EXPECT_EQ(stub_error("int x;\n// SOLUTION END\n"), "s.hpp:2: '// SOLUTION END' outside of a region");
  EXPECT_EQ(stub_error(todo), "s.hpp:1: '// SOLUTION STUB' outside of a region");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN a\n// SOLUTION BEGIN b\n"),
            "s.hpp:2: region 'b' begins inside region 'a'");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN a\n" + todo + "// SOLUTION END\n"),
            "s.hpp:1: region 'a' has no code");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN a\n// a comment\n" + todo + "// SOLUTION END\n"),
            "s.hpp:1: region 'a' has no code");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN a\nf();\n// SOLUTION STUB return 0;\n// SOLUTION END\n"),
            "s.hpp:1: region 'a' needs a '// SOLUTION STUB LAB_TODO(\"…\");' line");
  EXPECT_EQ(stub_error("// SOLUTION BEGIN Twice\n"),
            "s.hpp:1: 'Twice' is no region name (small letters, digits, _)");
  const std::string whole = "// SOLUTION BEGIN a\nf();\n" + todo + "// SOLUTION END\n";
  EXPECT_EQ(stub_error(whole + whole), "s.hpp:5: region 'a' appears twice");
  EXPECT_EQ(stub_error("f(); // SOLUTION END\n"),
            "s.hpp:1: a '// SOLUTION' marker must be alone on its line");
  EXPECT_EQ(stub_error("// SOLUTION FINISH\n"),
            "s.hpp:1: '// SOLUTION FINISH' is no marker; there are BEGIN, STUB, END");
  EXPECT_EQ(stub_error("// YOUR CODE BEGIN a\n"),
            "s.hpp:1: '// YOUR CODE' belongs to a generated exercise; a solution has '// SOLUTION' markers");
}

// Rejects: a mutant header that lacks the rest of the solution, or the change.
TEST(Stubgen, MutantIsTheSolutionWithOneRegionChanged) {
  const std::string mutant = "// Triples.\n// MUTANT BEGIN twice\n  return 3 * x;\n// MUTANT END\n";
  EXPECT_EQ(make_mutant("s.hpp", kSolution, "m.hpp", mutant), R"(// head
int f(int x) {
  // MUTANT BEGIN twice
  return 3 * x;
  // MUTANT END
}
// SOLUTION BEGIN g
int g() { return 1; }
// SOLUTION END
)");
}

// Rejects: mutants that would be compiled as the solution, lose code, or tell no story.
TEST(Stubgen, RefusesBrokenMutants) {
  EXPECT_EQ(mutant_error("// Story.\n"), "m.hpp:1: no '// MUTANT BEGIN region' in this file");
  EXPECT_EQ(mutant_error("// MUTANT BEGIN twice\n  return 3 * x;\n// MUTANT END\n"),
            "m.hpp:1: a mutant starts with a comment that tells its story");
  EXPECT_EQ(mutant_error("// Story.\n// MUTANT BEGIN thrice\nreturn 3;\n// MUTANT END\n"),
            "m.hpp:1: region 'thrice' is not in s.hpp, which has: twice, g");
  EXPECT_EQ(mutant_error("// Story.\n// MUTANT BEGIN twice\n// MUTANT END\n"),
            "m.hpp:2: region 'twice' has no code");
  EXPECT_EQ(mutant_error("// Story.\n// MUTANT BEGIN twice\nreturn 3;\n"),
            "m.hpp:2: region 'twice' has no '// MUTANT END'");
  EXPECT_EQ(mutant_error("// Story.\n// MUTANT BEGIN twice\n  return 2 * x;\n// MUTANT END\n"),
            "m.hpp:1: region 'twice' equals the solution's");
  EXPECT_EQ(mutant_error("// Story.\nint lost;\n// MUTANT BEGIN twice\nreturn 3;\n// MUTANT END\n"),
            "m.hpp:2: code outside of '// MUTANT BEGIN region' … '// MUTANT END' would be lost");
}

}  // namespace
}  // namespace shardlings::stubgen
