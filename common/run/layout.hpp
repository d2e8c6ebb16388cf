#pragma once
// How ranks and their threads sit on the cores of this machine, in one sentence for the head of a run.
#include <string>

namespace shardlings::run {

/// "4 ranks x 1 thread on 2 cores: more ranks than cores, so they take turns; …". `threads` per rank.
std::string layout_text(int ranks, int threads, int cores);

}  // namespace shardlings::run
