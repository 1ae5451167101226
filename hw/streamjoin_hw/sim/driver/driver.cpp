// The Verilated design behind a C interface: whole inputs in one call.
//
// Compiled once for each design, with TUPLE_BYTES, RESULT_BYTES and DESIGN_DIGEST defined from
// its manifest, CONTROL_OFFSET and SOFT_RESET_MASK from the register map. One clock cycle is
// `tick`: outputs are read, inputs set, the clock rises. No output of the design depends on an
// input of the same cycle, so what was read stays true.
//
// With FOR_BOARD defined it is the top level for boards: beats are the words that a DMA carries,
// `dest` and `last` count for nothing, and a run ends with a packet.
//
// With COUNT_ACTIVITY defined the design is a netlist that shows its nets, and what switches in it
// is counted (activity.h).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "Vmodel.h"
#include "verilated.h"

#ifdef COUNT_ACTIVITY
#include "activity.h"
#endif

#ifdef FOR_BOARD
#define TO_DESIGN(name) s_axis_words_##name
#define FROM_DESIGN(name) m_axis_words_##name
#else
#define TO_DESIGN(name) s_axis_tuples_##name
#define FROM_DESIGN(name) m_axis_results_##name
#endif

extern "C" {

// One call of sjm_run. See contract/model_library.py for the same structure in ctypes.
//
// A call that returns SJM_RESULTS_FULL or SJM_DEADLINE is gone on with by another one that has
// `resume` set and the same beats. Without `resume` a run begins: a beat that an abandoned run
// still offers is withdrawn. What the design took of an abandoned run it keeps until a soft reset,
// and it may take an offered beat during any register access; so a soft reset is made before the
// next run, and withdraws that beat too.
typedef struct {
  const uint8_t* beats;       // beat_count * TUPLE_BYTES, packed tdata, little endian
  const uint8_t* dest;        // beat_count
  const int64_t* not_before;  // beat_count cycles from the run's start, or NULL
  int64_t* accepted;          // beat_count or NULL: out, cycle in which the beat was taken
  int64_t beat_count;
  int32_t last;  // 1: the final beat carries tlast
  int32_t resume;  // 1: go on with the run that the last call left; 0: begin one
  uint8_t* results;  // capacity * RESULT_BYTES, out
  uint8_t* users;    // capacity, out: tuser
  int64_t* stamps;   // capacity or NULL: out, cycle of the handshake
  int64_t capacity;
  int64_t max_cycles;  // deadline of this call
  uint64_t seed;
  uint32_t idle_per_1024;   // how often the input pauses before a beat, per cycle
  uint32_t stall_per_1024;  // how often the output is not ready, per cycle
  int64_t beats_taken;      // in: where to go on; out
  int64_t results_taken;    // out, of this call
  int64_t cycles;           // out, of this call
} SjmRun;

enum {
  SJM_ENDED = 0,
  SJM_RESULTS_FULL = 1,
  SJM_DEADLINE = 2,
  SJM_BEATS_TAKEN = 3,
  SJM_NOTHING_TO_RESUME = 4
};
}

namespace {

constexpr int kResetCycles = 4;
constexpr int kBusDeadlineCycles = 1000;

struct Model {
  std::unique_ptr<VerilatedContext> context{new VerilatedContext};
  std::unique_ptr<Vmodel> top{new Vmodel{context.get(), "model"}};
  int64_t cycle = 0;
  uint64_t random = 1;
  // A beat that is offered stays until it is taken, also across calls and register accesses.
  bool offered = false;
  bool taken = false;       // ... and it was taken,
  int64_t taken_cycle = 0;  // in this cycle
  bool resumable = false;  // the last run ended before its input did
  int64_t resume_beat = 0;
  int64_t run_start = 0;
#ifdef COUNT_ACTIVITY
  Activity activity;
#endif

  void tick() {
#ifdef COUNT_ACTIVITY
    top->eval();  // the inputs are new
    activity.sample(*top);
#endif
    if (offered && top->TO_DESIGN(tready)) {
      taken = true;
      taken_cycle = cycle;
    }
    top->aclk = 1;
    top->eval();
    top->aclk = 0;
    top->eval();
    ++cycle;
    if (taken) {
      offered = false;
      top->TO_DESIGN(tvalid) = 0;
    }
  }

  uint32_t draw() {  // xorshift64*, 10 bits
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return static_cast<uint32_t>((random * 0x2545F4914F6CDD1DULL) >> 54);
  }

  void seed(uint64_t value) { random = value * 0x9E3779B97F4A7C15ULL + 0x1234567ULL | 1; }

  void offer(const SjmRun* run, int64_t beat) {
    std::memcpy(&top->TO_DESIGN(tdata), run->beats + beat * TUPLE_BYTES, TUPLE_BYTES);
#ifndef FOR_BOARD
    top->TO_DESIGN(tdest) = run->dest[beat] & 1;
    top->TO_DESIGN(tlast) = run->last && beat + 1 == run->beat_count;
#endif
    top->TO_DESIGN(tvalid) = 1;
    offered = true;
    taken = false;
  }

  void withdraw() {
    offered = false;
    taken = false;
    top->TO_DESIGN(tvalid) = 0;
  }
};

Model* as_model(void* handle) { return static_cast<Model*>(handle); }

}  // namespace

extern "C" {

void* sjm_open(void) {
  Model* model = new Model;
  Vmodel* top = model->top.get();
  top->aclk = 0;
  top->aresetn = 0;
  top->eval();
  for (int i = 0; i < kResetCycles; ++i) model->tick();
  top->aresetn = 1;
  model->tick();
  model->cycle = 0;
  return model;
}

void sjm_close(void* handle) {
  Model* model = as_model(handle);
  model->top->final();
  delete model;
}

int sjm_read(void* handle, uint32_t offset, uint32_t* value) {
  Model* model = as_model(handle);
  Vmodel* top = model->top.get();
  top->s_axil_ctrl_araddr = offset;
  top->s_axil_ctrl_arvalid = 1;
  top->s_axil_ctrl_rready = 1;
  for (int i = 0; i < kBusDeadlineCycles; ++i) {
    const bool asked = top->s_axil_ctrl_arvalid && top->s_axil_ctrl_arready;
    const bool answered = top->s_axil_ctrl_rvalid;
    const uint32_t data = top->s_axil_ctrl_rdata;
    const int response = top->s_axil_ctrl_rresp;
    model->tick();
    if (asked) top->s_axil_ctrl_arvalid = 0;
    if (answered) {
      top->s_axil_ctrl_rready = 0;
      *value = data;
      return response;
    }
  }
  top->s_axil_ctrl_arvalid = 0;
  top->s_axil_ctrl_rready = 0;
  return -1;
}

int sjm_write(void* handle, uint32_t offset, uint32_t value) {
  Model* model = as_model(handle);
  Vmodel* top = model->top.get();
  if (offset == CONTROL_OFFSET && value & SOFT_RESET_MASK) {
    model->withdraw();
    model->resumable = false;
  }
  top->s_axil_ctrl_awaddr = offset;
  top->s_axil_ctrl_awvalid = 1;
  top->s_axil_ctrl_wdata = value;
  top->s_axil_ctrl_wstrb = 15;
  top->s_axil_ctrl_wvalid = 1;
  top->s_axil_ctrl_bready = 1;
  for (int i = 0; i < kBusDeadlineCycles; ++i) {
    const bool address = top->s_axil_ctrl_awvalid && top->s_axil_ctrl_awready;
    const bool data = top->s_axil_ctrl_wvalid && top->s_axil_ctrl_wready;
    const bool answered = top->s_axil_ctrl_bvalid;
    const int response = top->s_axil_ctrl_bresp;
    model->tick();
    if (address) top->s_axil_ctrl_awvalid = 0;
    if (data) top->s_axil_ctrl_wvalid = 0;
    if (answered) {
      top->s_axil_ctrl_bready = 0;
      return response;
    }
  }
  top->s_axil_ctrl_awvalid = 0;
  top->s_axil_ctrl_wvalid = 0;
  top->s_axil_ctrl_bready = 0;
  return -1;
}

int sjm_run(void* handle, SjmRun* run) {
  Model* model = as_model(handle);
  Vmodel* top = model->top.get();
  const int64_t call_start = model->cycle;
  int64_t beat = run->beats_taken;
  int64_t result = 0;
  if (run->resume) {
    if (!model->resumable || beat != model->resume_beat) {
      run->results_taken = 0;
      run->cycles = 0;
      return SJM_NOTHING_TO_RESUME;
    }
    if (model->taken) {  // during a register access since the last call
      if (run->accepted) run->accepted[beat] = model->taken_cycle;
      ++beat;
      model->taken = false;
    }
  } else {
    model->run_start = call_start;
    model->seed(run->seed);
    model->withdraw();
  }

  int status = SJM_DEADLINE;
  for (;;) {
    if (beat == run->beat_count && !run->last) {
      status = SJM_BEATS_TAKEN;
      break;
    }
    if (result == run->capacity) {
      status = SJM_RESULTS_FULL;
      break;
    }
    if (model->cycle - call_start >= run->max_cycles) break;

    if (!model->offered && beat < run->beat_count &&
        (!run->not_before || model->cycle - model->run_start >= run->not_before[beat]) &&
        (!run->idle_per_1024 || model->draw() >= run->idle_per_1024)) {
      model->offer(run, beat);
    }
    const bool ready = !run->stall_per_1024 || model->draw() >= run->stall_per_1024;
    top->FROM_DESIGN(tready) = ready;
    bool ended = false;
    if (ready && top->FROM_DESIGN(tvalid)) {
      std::memcpy(run->results + result * RESULT_BYTES, &top->FROM_DESIGN(tdata), RESULT_BYTES);
#ifdef FOR_BOARD
      run->users[result] = top->FROM_DESIGN(tlast);
#else
      run->users[result] = top->FROM_DESIGN(tuser);
#endif
      if (run->stamps) run->stamps[result] = model->cycle;
      ended = top->FROM_DESIGN(tlast);
      ++result;
    }
    model->tick();
    if (model->taken) {
      if (run->accepted) run->accepted[beat] = model->taken_cycle;
      ++beat;
      model->taken = false;
    }
    if (ended) {
      status = SJM_ENDED;
      break;
    }
  }
  top->FROM_DESIGN(tready) = 0;
  // An input outlasts a packet, not the drain.
  const bool goes_on = status == SJM_ENDED && beat < run->beat_count;
  model->resumable = status == SJM_RESULTS_FULL || status == SJM_DEADLINE || goes_on;
  model->resume_beat = beat;
  run->beats_taken = beat;
  run->results_taken = result;
  run->cycles = model->cycle - call_start;
  return status;
}

// Lets a cycle pass in which a beat that the design offers is taken, and drops it: a soft reset
// waits for that.
void sjm_drop(void* handle) {
  Model* model = as_model(handle);
  model->top->FROM_DESIGN(tready) = 1;
  model->tick();
  model->top->FROM_DESIGN(tready) = 0;
}

int64_t sjm_cycles(void* handle) { return as_model(handle)->cycle; }

#ifdef COUNT_ACTIVITY
void sjm_activity(void* handle, uint64_t* counts) {
  const Activity& activity = as_model(handle)->activity;
  std::copy(activity.counts.begin(), activity.counts.end(), counts);
}
#endif

const char* sjm_manifest_digest(void*) { return DESIGN_DIGEST; }
}
