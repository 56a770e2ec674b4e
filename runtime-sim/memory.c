// Memories of tiles, and where the addresses of instructions are. A tile has its own memory; the host's is the areas of
// inputs and outputs, one for each step.
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

enum { MOST_SHARED = 32, LEAST_BYTES = 64, ALIGNMENT = 8 };

static const weft_image_segment_t* segment_of(const weft_sim_t* sim, const weft_sim_slot_t* slot, uint32_t index) {
  return &sim->image->segments[slot->tile->segments + index];
}

// What a shared segment saves: whole words, so that everything behind it stays aligned.
static int64_t saved_bytes(const weft_image_segment_t* segment) {
  return (int64_t)segment->size / ALIGNMENT * ALIGNMENT;
}

void weft_sim_memory_share(weft_sim_t* sim, int32_t index) {
  weft_sim_slot_t* slot = &sim->slot[index];
  int64_t end = 0;
  slot->shared = 0;
  for (uint32_t s = 0; s < slot->tile->segment_count; ++s) {
    const weft_image_segment_t* segment = segment_of(sim, slot, s);
    if (segment->address < end) { // in no order, or one over the other: then the last one counts, in memory of its own
      slot->shared = 0;
      return;
    }
    end = (int64_t)segment->address + segment->size;
    bool aligned = segment->address % ALIGNMENT == segment->offset % ALIGNMENT;
    if (s < MOST_SHARED && segment->size >= LEAST_BYTES && aligned) slot->shared |= UINT32_C(1) << s;
  }
}

void weft_sim_memory_use(weft_sim_t* sim, int32_t index, int64_t lo, int64_t hi, bool writes) {
  weft_sim_slot_t* slot = &sim->slot[index];
  for (uint32_t shared = slot->shared; shared; shared &= shared - 1) {
    uint32_t s = (uint32_t)__builtin_ctz(shared);
    const weft_image_segment_t* segment = segment_of(sim, slot, s);
    int64_t begin = segment->address, end = begin + segment->size;
    bool apart = hi <= begin || lo >= end, inside = lo >= begin && hi <= end;
    if (!apart && (writes || !inside)) slot->shared &= ~(UINT32_C(1) << s);
  }
}

// The place of an address within a tile. What is shared is missing in the tile's own memory.
static uint8_t* tile_address(const weft_sim_t* sim, const weft_sim_slot_t* slot, uint8_t* memory, int64_t address) {
  int64_t own = address;
  for (uint32_t shared = slot->shared; shared; shared &= shared - 1) {
    const weft_image_segment_t* segment = segment_of(sim, slot, (uint32_t)__builtin_ctz(shared));
    if (address < segment->address) break;
    // Nothing writes there: the pointer is not const for the sake of all the others.
    if (address < (int64_t)segment->address + segment->size)
      return (uint8_t*)(uintptr_t)(sim->image->consts + segment->offset + (address - segment->address));
    own -= saved_bytes(segment);
  }
  return memory ? memory + own : NULL;
}

weft_status_t weft_sim_memory_ready(weft_sim_t* sim, int32_t index) {
  weft_sim_slot_t* slot = &sim->slot[index];
  if (slot->memory || weft_sim_is_host(sim, index)) return weft_ok();
  int64_t bytes = slot->tile->memory_bytes;
  for (uint32_t shared = slot->shared; shared; shared &= shared - 1)
    bytes -= saved_bytes(segment_of(sim, slot, (uint32_t)__builtin_ctz(shared)));
  bytes = weft_max_i64(bytes, 1);
  weft_sim_job_t* job;
  WEFT_RETURN_IF_ERROR(weft_sim_work_next(sim, WEFT_SIM_JOB_CLEAR, index, &job));
  WEFT_RETURN_IF_ERROR(weft_allocator_realloc(sim->allocator, (size_t)bytes, 1, (void**)&slot->memory));
  job->clear.memory = slot->memory;
  job->clear.bytes = (size_t)bytes;
  WEFT_RETURN_IF_ERROR(weft_sim_work_submit(sim));
  int64_t fills = slot->fills;
  slot->fills = 0;
  return weft_sim_core_fill(sim, index, fills);
}

void weft_sim_memory_clear(const weft_sim_t* sim, int32_t index, uint8_t* memory, size_t bytes) {
  const weft_sim_slot_t* slot = &sim->slot[index];
  memset(memory, 0, bytes);
  for (uint32_t s = 0; s < slot->tile->segment_count; ++s) {
    const weft_image_segment_t* segment = segment_of(sim, slot, s);
    bool is_shared = s < MOST_SHARED && slot->shared >> s & 1;
    if (segment->size && !is_shared)
      memcpy(tile_address(sim, slot, memory, segment->address), sim->image->consts + segment->offset, segment->size);
  }
}

weft_status_t weft_sim_memory_release(weft_sim_t* sim, int32_t slot_index) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  for (int32_t s = 0; s < slot->source_count; ++s)
    if (sim->source[sim->slot_sources[slot->first_source + s]].pending) return weft_ok();
  uint8_t* memory = slot->memory;
  slot->memory = NULL;
  return weft_sim_work_release(sim, memory);
}

bool weft_sim_memory_is_over(const weft_sim_t* sim, int32_t slot) {
  return sim->slot[slot].wait == WEFT_SIM_HALTED && !sim->slot[slot].memory;
}

// The io in whose area (of step 0) an address lies, or NONE. The areas ascend.
static int32_t find_io(const weft_sim_t* sim, int64_t address) {
  size_t low = 0, high = sim->image->io_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const weft_image_io_t* io = &sim->image->io[middle];
    if ((int64_t)(io->address + io->step_stride) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < sim->image->io_count && (int64_t)sim->image->io[low].address <= address;
  return found ? (int32_t)low : WEFT_SIM_NONE;
}

static bool is_within(int64_t base, int64_t lo, int64_t hi, int64_t size) {
  int64_t first, end;
  return weft_checked_add(base, lo, &first) && weft_checked_add(base, hi, &end) && first >= 0 && end <= size;
}

bool weft_sim_address_exists(const weft_sim_t* sim, int32_t slot, int64_t base, int64_t lo, int64_t hi,
                             int64_t* out_size, int32_t* out_io) {
  *out_io = WEFT_SIM_NONE;
  *out_size = sim->slot[slot].tile->memory_bytes;
  if (!weft_sim_is_host(sim, slot)) return is_within(base, lo, hi, *out_size);
  *out_size = 0;
  *out_io = find_io(sim, base);
  if (*out_io < 0) return false;
  *out_size = sim->io[*out_io].bytes;
  return is_within(base - (int64_t)sim->image->io[*out_io].address, lo, hi, *out_size);
}

uint8_t* weft_sim_address(const weft_sim_t* sim, int32_t slot, int64_t base, int64_t lo, int64_t hi, int64_t step) {
  int64_t size;
  int32_t io;
  if (!weft_sim_address_exists(sim, slot, base, lo, hi, &size, &io)) return NULL;
  if (io < 0) return tile_address(sim, &sim->slot[slot], sim->slot[slot].memory, base);
  if (step >= sim->io[io].steps || !sim->io[io].data) return NULL;
  const weft_image_io_t* record = &sim->image->io[io];
  return sim->io[io].data + step * (int64_t)record->step_stride + (base - (int64_t)record->address);
}

bool weft_sim_loop_reach(const weft_instruction_t* instruction, int32_t operand, int64_t size, int64_t* out_lo,
                         int64_t* out_hi) {
  *out_lo = 0;
  *out_hi = size;
  for (int32_t l = 0; l < instruction->loop_count; ++l) {
    int64_t reach = (int64_t)instruction->loop[l].stride[operand] * (instruction->loop[l].extent - 1);
    int64_t* end = reach < 0 ? out_lo : out_hi;
    if (!weft_checked_add(*end, reach, end)) return false;
  }
  return true;
}

int64_t weft_sim_loop_points(const weft_instruction_t* instruction) {
  int64_t points = 1;
  for (int32_t l = 0; l < instruction->loop_count; ++l) {
    if (!weft_checked_mul(points, (int64_t)instruction->loop[l].extent, &points) || points > WEFT_SIM_MAX_POINTS)
      return -1;
  }
  return points;
}
