// Counts what switches in a netlist that shows its nets as ports (power/netlist.py).
//
// `sample` is called once a clock cycle, when all nets have settled and before the clock rises. A
// net counts once a cycle at most: what it does before it settles is not simulated.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "Vmodel.h"

class Activity {
 public:
  static constexpr int kKinds = 4;
  std::array<uint64_t, kKinds> counts{};

  void sample(const Vmodel& top) {
    toggles(0, top.watch_register);
    toggles(1, top.watch_lut);
    ones(2, top.watch_lut_ram);
    ones(3, top.watch_block_ram);
  }

 private:
  std::array<std::vector<EData>, 2> before;

  static uint64_t ones_in(EData word) { return std::bitset<32>(word).count(); }

  template <std::size_t words>
  void toggles(int kind, const VlWide<words>& now) {
    std::vector<EData>& last = before[kind];
    if (last.empty()) last.assign(now.data(), now.data() + words);
    for (std::size_t i = 0; i < words; ++i) {
      counts[kind] += ones_in(last[i] ^ now[i]);
      last[i] = now[i];
    }
  }

  template <std::size_t words>
  void ones(int kind, const VlWide<words>& now) {
    for (std::size_t i = 0; i < words; ++i) counts[kind] += ones_in(now[i]);
  }
};
