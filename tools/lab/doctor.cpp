// `lab doctor`: what this machine has, what the course makes of it, and what is missing.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

void line(bool good, const std::string& what, const std::string& found) {
  fmt::print("  {} {:<14} {}\n", good ? paint(Colour::kGreen, "✓") : paint(Colour::kYellow, "–"), what,
             found);
}

/// The text after the colon of the first line of a /proc file that begins so.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string text;
  while (std::getline(in, text)) {
    if (text.compare(0, key.size(), key) != 0) continue;
    const size_t value = text.find_first_not_of(" \t", text.find(':') + 1);
    return value == std::string::npos ? "" : text.substr(value);
  }
  return "";
}

/// First line of what a program prints, or "" if it is not there or fails.
std::string first_line(const Lab& lab, const Command& command) {
  if (!on_path(command[0])) return "";
  fs::create_directories(lab.kept);
  const fs::path log = lab.kept / "doctor.log";
  if (!run_process(command, {log, {}, std::chrono::seconds(10)}).ok()) return "";
  const std::string text = read_file(log);
  return text.substr(0, text.find('\n'));
}

/// Cores that this process may use: fewer than the machine has, in a container or under taskset.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void machine(const Lab& lab) {
  fmt::print("Machine\n");
  line(true, "processor", proc_value("/proc/cpuinfo", "model name"));
  std::istringstream flags(proc_value("/proc/cpuinfo", "flags"));
  std::string flag, found;
  for (const char* wanted : {"avx2", "avx512f", "avx512_bf16", "amx_bf16"}) {
    flags.clear();
    flags.seekg(0);
    while (flags >> flag) {
      if (flag == wanted) found += (found.empty() ? "" : ", ") + flag;
    }
  }
  line(!found.empty(), "instructions", found.empty() ? "no AVX2: the products will be slow" : found);
  line(true, "cores", fmt::format("{} usable", usable_cores()));
  std::istringstream kib(proc_value("/proc/meminfo", "MemAvailable"));
  double free_kib = 0;
  kib >> free_kib;
  line(free_kib > 2e6, "memory", fmt::format("{:.1f} GiB free (the build wants 2)", free_kib / 1048576));
  const double disk = static_cast<double>(fs::space(lab.root).available) / (1ULL << 30U);
  line(disk > 3, "disk", fmt::format("{:.1f} GiB free here (the course wants 3)", disk));
  const bool nvidia = fs::exists("/dev/nvidiactl") || fs::exists("/dev/nvidia0");
  const std::string gpu =
      nvidia ? first_line(lab, {"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"}) : "";
  line(nvidia, "GPU",
       nvidia ? (gpu.empty() ? "a device, but nvidia-smi does not answer" : gpu)
              : "none: everything runs on the CPU");
}

bool software(const Lab& lab) {
  fmt::print("\nSoftware\n");
  bool complete = true;
  const auto need = [&](const std::string& what, const std::string& found) {
    line(!found.empty(), what, found.empty() ? "missing; run ./lab setup" : found);
    complete &= !found.empty();
  };
  const auto offer = [&](const std::string& what, const std::string& found, const std::string& without) {
    line(!found.empty(), what, found.empty() ? without : found);
  };
  need("compiler", first_line(lab, {"c++", "--version"}));
  need("cmake", first_line(lab, {"cmake", "--version"}));
  need("ninja", first_line(lab, {"ninja", "--version"}));
  const fs::path text = lab.root / "data" / "CHECKSUMS";
  need("text", fs::exists(text) ? "fetched, with checksums in data/CHECKSUMS" : "");
  offer("npm", first_line(lab, {"npm", "--version"}), "none: needed to fetch the text and to build slides");
  offer("chromium", on_path("chromium") ? "found" : "", "none: only CI's browser checks need it");
  offer("mpirun", first_line(lab, {"mpirun", "--version"}), "none: ranks are threads, which need nothing");
  return complete;
}

void advice() {
  const int cores = usable_cores();
  fmt::print(
      "\nRanks and threads: ranks x threads should not exceed {} cores; --threads defaults to max(1, cores / "
      "ranks)\n",
      cores);
  for (const int ranks : {1, 2, 4, 8}) {
    const int threads = std::max(1, cores / ranks);
    const char* note = ranks * threads > cores ? "   more ranks than cores: right results, no speed-up" : "";
    fmt::print("  --ranks {} --threads {}{}\n", ranks, threads, note);
  }
  if (!on_path("mpirun")) return;
  std::string command = "mpirun -n 4";
  if (geteuid() == 0) command += " --allow-run-as-root";
  if (cores < 4) command += " --oversubscribe";
  fmt::print(
      "Four processes under MPI start here with:\n  {} --mca btl_vader_single_copy_mechanism none PROGRAM\n",
      command);
}

}  // namespace

int doctor(Lab& lab, const Words& words) {
  Options options("doctor",
                  "What this machine has, and which ranks and threads suit it. Exit code 1 if something "
                  "needed is missing.");
  if (const auto done = options.parse(words)) return *done;
  machine(lab);
  const bool complete = software(lab);
  advice();
  return complete ? 0 : 1;
}

}  // namespace shardlings::lab
