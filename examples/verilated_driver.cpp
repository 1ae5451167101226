// A driver in C++, made from streamjoin.h and the manifest alone: it joins two streams on the
// Verilated design and compares the pairs with those of two nested loops.
//
//   streamjoin hw verilog --preset tiny --out build/tiny
//   verilator --cc --exe --build -CFLAGS -I$PWD/build/tiny --Mdir build/tiny/obj \
//       build/tiny/streamjoin_top.v examples/verilated_driver.cpp
//   build/tiny/obj/Vstreamjoin_top
//
// With the Verilator that `make setup` installs the second command begins with
// `.venv/bin/verilator-cli --cc --exe --build -MAKEFLAGS CFG_CXXFLAGS_PCH_I=-include`, which sets what
// the makefile of its package leaves empty.
//
// For designs with one equality and count windows. In a system, STREAMJOIN_BASE is the address that the
// registers have on its bus (examples/litex_soc.py).

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "Vstreamjoin_top.h"
#include "streamjoin.h"
#include "verilated.h"

static_assert(STREAMJOIN_TERMS == 1 && STREAMJOIN_TIMESTAMP_BITS == 0, "one key, count windows");

#ifndef STREAMJOIN_BASE
#define STREAMJOIN_BASE 0
#endif

namespace {

constexpr int kPatience = 100000;  // cycles

struct Tuple {
  int side;
  uint32_t key;
  uint32_t payload;
};
struct Result {
  uint32_t r, s;
  uint32_t user;
  bool last;
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

class Driver {
 public:
  Driver() {
    top_.aresetn = 0;
    tick();
    top_.aresetn = 1;
  }

  uint32_t read(uint32_t offset) {
    top_.s_axil_ctrl_araddr = STREAMJOIN_BASE + offset;
    top_.s_axil_ctrl_arvalid = 1;
    until(top_.s_axil_ctrl_arready);
    top_.s_axil_ctrl_arvalid = 0;
    top_.s_axil_ctrl_rready = 1;
    const uint32_t value = until(top_.s_axil_ctrl_rvalid, &top_.s_axil_ctrl_rdata);
    require(last_response_ == 0, "a read was answered with an error");
    top_.s_axil_ctrl_rready = 0;
    return value;
  }

  void write(uint32_t offset, uint32_t value) {
    top_.s_axil_ctrl_awaddr = STREAMJOIN_BASE + offset;
    top_.s_axil_ctrl_wdata = value;
    top_.s_axil_ctrl_wstrb = 15;
    top_.s_axil_ctrl_awvalid = top_.s_axil_ctrl_wvalid = top_.s_axil_ctrl_bready = 1;
    bool answered = false;
    for (int cycle = 0; !answered; ++cycle) {
      require(cycle < kPatience, "a write was not answered");
      // What is ready now takes what is offered at the rising edge.
      const bool address = top_.s_axil_ctrl_awready, data = top_.s_axil_ctrl_wready;
      answered = top_.s_axil_ctrl_bvalid;
      require(!answered || top_.s_axil_ctrl_bresp == 0, "a write was answered with an error");
      tick();
      if (address) top_.s_axil_ctrl_awvalid = 0;
      if (data) top_.s_axil_ctrl_wvalid = 0;
    }
    top_.s_axil_ctrl_bready = 0;
  }

  // Gives tuples, the last one with tlast, and takes beats until the punctuation with tlast.
  std::vector<Result> join(const std::vector<Tuple>& tuples) {
    std::vector<Result> results;
    size_t next = 0;
    for (int quiet = 0; quiet < kPatience; ++quiet) {
      top_.s_axis_tuples_tvalid = next < tuples.size();
      if (next < tuples.size()) {
        uint32_t beat[(STREAMJOIN_TUPLE_BITS + 31) / 32] = {};
        const Tuple& each = tuples[next];
        streamjoin_put(beat, STREAMJOIN_TUPLE_KEY0_OFFSET, STREAMJOIN_TUPLE_KEY0_WIDTH, each.key);
        streamjoin_put(beat, STREAMJOIN_TUPLE_PAYLOAD_OFFSET, STREAMJOIN_TUPLE_PAYLOAD_WIDTH,
                       each.payload);
        std::memcpy(&top_.s_axis_tuples_tdata, beat, sizeof top_.s_axis_tuples_tdata);
        top_.s_axis_tuples_tdest = each.side;
        top_.s_axis_tuples_tlast = next + 1 == tuples.size();
      }
      top_.m_axis_results_tready = quiet % 3 != 0;  // some backpressure
      top_.eval();
      if (top_.s_axis_tuples_tvalid && top_.s_axis_tuples_tready) ++next;
      if (top_.m_axis_results_tvalid && top_.m_axis_results_tready) {
        uint32_t beat[(STREAMJOIN_RESULT_BITS + 31) / 32] = {};
        std::memcpy(beat, &top_.m_axis_results_tdata, sizeof top_.m_axis_results_tdata);
        const auto field = [&](unsigned offset, unsigned width) {
          return static_cast<uint32_t>(streamjoin_get(beat, offset, width));
        };
        results.push_back(
            {field(STREAMJOIN_RESULT_R_PAYLOAD_OFFSET, STREAMJOIN_RESULT_R_PAYLOAD_WIDTH),
             field(STREAMJOIN_RESULT_S_PAYLOAD_OFFSET, STREAMJOIN_RESULT_S_PAYLOAD_WIDTH),
             top_.m_axis_results_tuser, static_cast<bool>(top_.m_axis_results_tlast)});
#ifdef STREAMJOIN_TUSER_SECOND  // in designs whose beats may be two results
        if (top_.m_axis_results_tuser & STREAMJOIN_TUSER_SECOND)
          results.push_back({field(STREAMJOIN_RESULT_R_PAYLOAD_SECOND_OFFSET,
                                   STREAMJOIN_RESULT_R_PAYLOAD_SECOND_WIDTH),
                             field(STREAMJOIN_RESULT_S_PAYLOAD_SECOND_OFFSET,
                                   STREAMJOIN_RESULT_S_PAYLOAD_SECOND_WIDTH),
                             STREAMJOIN_TUSER_RESULT, false});
#endif
        quiet = 0;
      }
      const bool ended = !results.empty() && results.back().last;
      tick();
      if (ended) return results;
    }
    require(false, "the input did not end");
    return results;
  }

 private:
  // Outputs are those before the rising edge.
  void tick() {
    top_.aclk = 0;
    top_.eval();
    top_.aclk = 1;
    top_.eval();
    top_.aclk = 0;
    top_.eval();
  }

  // Waits until a flag is 1 at a rising edge; returns what a port was then.
  template <typename Flag>
  uint32_t until(const Flag& flag, const IData* port = nullptr) {
    for (int cycle = 0; cycle < kPatience; ++cycle) {
      const bool is_set = flag;
      const uint32_t value = port ? *port : 0;
      last_response_ = top_.s_axil_ctrl_rresp;
      tick();
      if (is_set) return value;
    }
    require(false, "a register access was not answered");
    return 0;
  }

  Vstreamjoin_top top_;
  uint32_t last_response_ = 0;
};

// The pairs owed: of a window's tuples those that arrived last before the later tuple.
std::multiset<std::pair<uint32_t, uint32_t>> expected(const std::vector<Tuple>& tuples,
                                                      size_t window) {
  std::multiset<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<Tuple> seen[2];
  for (const Tuple& each : tuples) {
    const std::vector<Tuple>& other = seen[1 - each.side];
    for (size_t k = other.size() > window ? other.size() - window : 0; k < other.size(); ++k) {
      if (other[k].key != each.key) continue;
      const bool is_r = each.side == STREAMJOIN_SIDE_R;
      pairs.insert(is_r ? std::make_pair(each.payload, other[k].payload)
                        : std::make_pair(other[k].payload, each.payload));
    }
    seen[each.side].push_back(each);
  }
  return pairs;
}

}  // namespace

int main() {
  Driver driver;
  require(driver.read(STREAMJOIN_REG_IDENTITY) == STREAMJOIN_IDENTITY, "not a streamjoin design");
  const uint64_t digest = driver.read(STREAMJOIN_REG_DIGEST_LOW) |
                          static_cast<uint64_t>(driver.read(STREAMJOIN_REG_DIGEST_HIGH)) << 32;
  require(digest == STREAMJOIN_DIGEST, "streamjoin.h is of another design");

  const uint32_t window = STREAMJOIN_WINDOW_CAPACITY > 1 ? STREAMJOIN_WINDOW_CAPACITY / 2 : 1;
  driver.write(STREAMJOIN_REG_WINDOW_R, window);
  driver.write(STREAMJOIN_REG_WINDOW_S, window);

  size_t total = 0;
  uint32_t random = 1;
  for (int input = 0; input < 2; ++input) {  // the second one without a reset
    std::vector<Tuple> tuples;
    for (uint32_t number = 0; number < 300; ++number) {
      random = random * 1664525 + 1013904223;
      tuples.push_back({static_cast<int>(random >> 31), random >> 20 & 7, number});
    }
    std::multiset<std::pair<uint32_t, uint32_t>> found;
    for (const Result& each : driver.join(tuples)) {
      if (each.user & STREAMJOIN_TUSER_RESULT)
        found.insert({each.r, each.s});
      else
        require(each.last && each.user & STREAMJOIN_TUSER_PUNCTUATION, "an unknown beat");
    }
    require(found == expected(tuples, window), "the pairs differ from those of nested loops");
    total += found.size();
  }
  require(driver.read(STREAMJOIN_REG_RESULTS) == total, "the counter of results differs");
  require(driver.read(STREAMJOIN_REG_STATUS) & STREAMJOIN_STATUS_IDLE, "the design is not idle");
  std::printf("%zu pairs, all as expected\n", total);
  return 0;
}
