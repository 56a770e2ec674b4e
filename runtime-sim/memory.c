// Memories of tiles, and where the addresses of instructions are. A tile has its own memory; the host's is the areas of
// inputs and outputs, one for each step.
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/internal.h"

weft_status_t weft_sim_memory_ready(weft_sim_t* sim, int32_t index) {
  weft_sim_slot_t* slot = &sim->slot[index];
  if (slot->memory || weft_sim_is_host(sim, index) || slot->tile->memory_bytes == 0) return weft_ok();
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(sim->allocator, slot->tile->memory_bytes, 1, (void**)&slot->memory));
  for (uint32_t s = 0; s < slot->tile->segment_count; ++s) {
    const weft_image_segment_t* segment = &sim->image->segments[slot->tile->segments + s];
    if (segment->size) memcpy(slot->memory + segment->address, sim->image->consts + segment->offset, segment->size);
  }
  return weft_ok();
}

void weft_sim_memory_release(weft_sim_t* sim, int32_t slot_index) {
  weft_sim_slot_t* slot = &sim->slot[slot_index];
  for (int32_t s = 0; s < slot->source_count; ++s)
    if (sim->source[sim->slot_sources[slot->first_source + s]].pending) return;
  for (int32_t s = 0; s < slot->sink_count; ++s) {
    int32_t index = sim->slot_sinks[slot->first_sink + s];
    if (weft_sim_is_posted(&sim->sink[index])) return;
  }
  weft_allocator_free(sim->allocator, slot->memory);
  slot->memory = NULL;
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
  if (io < 0) return sim->slot[slot].memory + base;
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
