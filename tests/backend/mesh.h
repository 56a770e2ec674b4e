// A mesh that only computes values, for tests of emitted images: it decodes every tile's program and runs it; a stream
// is a queue between the tiles that its route's colours name. Sends leave memory as late as they may, so that a missing
// wait shows; or, when eager, at once, and receives are stored as early as they may, so that one that is posted too
// early shows.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "base/array.h"

enum { MESH_STEPS = 8 };

typedef struct mesh_payload_t {
  uint8_t* data; // of all sources, in their order
  int32_t arrived;
} mesh_payload_t;
typedef struct mesh_stream_t {
  mesh_payload_t step[MESH_STEPS];
} mesh_stream_t;

typedef struct mesh_send_t {
  weft_instruction_t instruction;
  int32_t stream, source, step;
  bool pending;
} mesh_send_t;
// The receives of one colour: of steps [waited, posted), stored up to `stored`.
typedef struct mesh_receive_t {
  weft_instruction_t instruction; // the last RECV
  int32_t posted, stored, waited;
} mesh_receive_t;
typedef struct mesh_tile_t {
  const weft_image_tile_t* tile;
  uint8_t* memory;
  uint32_t* words;
  size_t word_count, pc, body;
  int32_t step;
  bool halted;
  WEFT_ARRAY(mesh_send_t) sends;
  WEFT_ARRAY(mesh_receive_t) receives;
} mesh_tile_t;
typedef struct mesh_t {
  const weft_fabric_t* fabric;
  const weft_machine_t* machine;
  const weft_image_t* image;
  int32_t steps;
  bool eager;
  mesh_stream_t* stream;
  mesh_tile_t* tile;
  size_t tile_count;
  uint8_t* host; // steps areas of host_bytes
  size_t host_bytes;
} mesh_t;

static inline weft_allocator_t mesh_allocator(void) {
  return weft_allocator_system();
}

static inline void mesh_ok(weft_status_t status) {
  if (status) print_error("%s\n", weft_status_message(status));
  assert_null(status);
}

static inline const weft_router_entry_t* mesh_entry(const weft_stream_t* s, int32_t tile, int32_t colour) {
  for (int32_t e = 0; e < s->entry_count; ++e)
    if (s->entry[e].tile == tile && s->entry[e].colour == colour) return &s->entry[e];
  return NULL;
}

// The stream that a tile sends to or receives from on a colour.
static inline int32_t mesh_find_stream(const mesh_t* m, int32_t tile, int32_t colour, bool receives) {
  for (int32_t s = 0; s < m->fabric->stream_count; ++s) {
    const weft_stream_t* stream = &m->fabric->stream[s];
    if (tile == WEFT_HOST_TILE) {
      const weft_image_host_colour_t* h = &m->image->host_colours[colour];
      if ((receives ? stream->sink_port : stream->source_port) != h->port) continue;
      weft_host_port_t port = weft_machine_port(m->machine, h->port);
      for (int32_t e = 0; e < stream->entry_count; ++e) {
        const weft_router_entry_t* entry = &stream->entry[e];
        if (entry->tile != port.tile) continue;
        if (receives ? (entry->outputs >> port.direction & 1) && entry->output_colour[port.direction] == h->colour
                     : entry->colour == h->colour && entry->input[0] == port.direction)
          return s;
      }
      continue;
    }
    const weft_router_entry_t* entry = mesh_entry(stream, tile, colour);
    if (!entry) continue;
    if (receives ? entry->outputs >> WEFT_DIRECTION_RAMP & 1 : entry->input[0] == WEFT_DIRECTION_RAMP) return s;
  }
  fail_msg("tile %d has no stream on colour %d", (int)tile, (int)colour);
  return -1;
}

static inline int32_t mesh_source_index(const mesh_t* m, int32_t stream, int32_t tile) {
  const weft_stream_t* s = &m->fabric->stream[stream];
  if (tile == WEFT_HOST_TILE) return 0;
  for (int32_t i = 0; i < s->source_count; ++i)
    if (m->fabric->kernel[s->source_kernel].tile[s->source[i].logical] == tile) return i;
  fail_msg("tile %d is no source of stream %d", (int)tile, (int)stream);
  return -1;
}

// Visits the points of a nest; offsets in bytes of up to four operands.
typedef void (*mesh_visit_fn)(void* self, const int64_t* address);
static inline void mesh_nest(const weft_instruction_t* i, int32_t operands, int32_t step, mesh_visit_fn visit,
                             void* self) {
  int64_t index[WEFT_ISA_MAX_LOOPS] = {0};
  for (;;) {
    int64_t address[4];
    for (int32_t o = 0; o < operands; ++o) {
      address[o] = weft_isa_address(i, o, step);
      for (int32_t l = 0; l < i->loop_count; ++l) address[o] += index[l] * i->loop[l].stride[o];
    }
    visit(self, address);
    int32_t l = i->loop_count - 1;
    while (l >= 0 && ++index[l] == i->loop[l].extent) index[l--] = 0;
    if (l < 0) return;
  }
}

static inline uint8_t* mesh_at(const mesh_t* m, mesh_tile_t* t, int32_t step, int64_t address, size_t size) {
  size_t limit = t->tile->memory_bytes;
  assert_true(address >= 0 && (size_t)address + size <= limit);
  return t->tile->tile == WEFT_HOST_TILE ? m->host + (size_t)step * m->host_bytes + address : t->memory + address;
}

typedef struct mesh_copy_t {
  const mesh_t* m;
  mesh_tile_t* t;
  int32_t step;
  size_t size;
  uint8_t* data;
  int64_t position;
  const weft_instruction_t* i;
  uint8_t* out; // CHAIN
} mesh_copy_t;

static inline void mesh_read(void* self, const int64_t* address) {
  mesh_copy_t* c = self;
  memcpy(c->data + (size_t)c->position++ * c->size, mesh_at(c->m, c->t, c->step, address[0], c->size), c->size);
}

static inline void mesh_leave(mesh_t* m, mesh_tile_t* t, mesh_send_t* send) {
  const weft_stream_t* s = &m->fabric->stream[send->stream];
  mesh_payload_t* p = &m->stream[send->stream].step[send->step];
  mesh_copy_t copy = {.m = m, .t = t, .step = send->step, .size = weft_dtype_size(s->dtype), .data = p->data};
  for (int32_t i = 0; i < send->source; ++i) copy.position += s->source[i].elements;
  int64_t first = copy.position;
  mesh_nest(&send->instruction, 1, send->step, mesh_read, &copy);
  assert_int_equal(copy.position - first, s->source[send->source].elements);
  ++p->arrived;
  send->pending = false;
}

// True when everything of the stream's step is there.
static inline bool mesh_complete(const mesh_t* m, int32_t stream, int32_t step) {
  return m->stream[stream].step[step].arrived == m->fabric->stream[stream].source_count;
}

// docs/isa.md, word by word: walk all levels, keep what is in the box, view, filter, store. Returns the elements
// stored.
static inline int64_t mesh_receive(const mesh_t* m, mesh_tile_t* t, const weft_instruction_t* i, int32_t step,
                                   const uint8_t* data) {
  size_t size = weft_dtype_size(i->dtype);
  int64_t index[WEFT_ISA_MAX_LEVELS] = {0}, position = 0, stored = 0;
  for (;;) {
    int64_t c[WEFT_ISA_MAX_RANK] = {0}, k[WEFT_ISA_MAX_RANK], flat = 0, address = weft_isa_address(i, 0, step);
    bool inside = true;
    for (int32_t l = 0; l < i->level_count; ++l) c[i->level[l].dim] += index[l] * i->level[l].step;
    for (int32_t d = 0; d < i->tensor_rank; ++d) {
      inside = inside && c[d] >= i->tensor_dim[d].lo && c[d] < i->tensor_dim[d].hi;
      flat += c[d] * i->tensor_dim[d].stride;
    }
    if (inside) {
      bool taken = true;
      for (int32_t d = 0; d < i->operand_rank; ++d) k[d] = i->operand_dim[d].offset;
      for (int32_t f = i->factor_count - 1; f >= 0; --f) {
        int64_t digit = flat % i->factor[f].extent;
        flat /= i->factor[f].extent;
        taken = taken && digit >= i->factor[f].lo && digit < i->factor[f].hi;
        if (i->factor[f].dim >= 0) k[i->factor[f].dim] += digit * i->factor[f].step;
      }
      for (int32_t d = 0; d < i->operand_rank; ++d) {
        taken = taken && k[d] >= i->operand_dim[d].lo && k[d] < i->operand_dim[d].hi;
        address += (k[d] - i->operand_dim[d].lo) * i->operand_dim[d].stride;
      }
      if (taken) {
        memcpy(mesh_at(m, t, step, address, size), data + (size_t)position * size, size);
        ++stored;
      }
      ++position;
    }
    int32_t l = i->level_count - 1;
    while (l >= 0 && ++index[l] == i->level[l].extent) index[l--] = 0;
    if (l < 0) return stored;
  }
}

static inline double mesh_combine(weft_op_e op, double a, double b, double c, double dst) {
  switch (op) {
  case WEFT_OP_MOV:
    return a;
  case WEFT_OP_ADD:
    return a + b;
  case WEFT_OP_SUB:
    return a - b;
  case WEFT_OP_MUL:
    return a * b;
  case WEFT_OP_MAX:
    return a > b ? a : b;
  case WEFT_OP_MIN:
    return a < b ? a : b;
  case WEFT_OP_MLA:
    return dst + a * b;
  case WEFT_OP_SELECT:
    return c != 0 ? a : b;
  default:
    fail_msg("operation %d", (int)op);
    return 0;
  }
}

static inline void mesh_compute(void* self, const int64_t* address) {
  mesh_copy_t* x = self;
  const weft_instruction_t* i = x->i;
  double source[3] = {0};
  for (int32_t s = 0; s < weft_op_source_count(i->op); ++s) {
    float single;
    memcpy(&single, &i->base[1 + s], sizeof(single));
    if (!(i->flags >> s & 1))
      source[s] = weft_dtype_load(i->dtype, mesh_at(x->m, x->t, x->step, address[1 + s], weft_dtype_size(i->dtype)));
    else
      source[s] = weft_dtype_is_float(i->dtype) ? (double)single : i->base[1 + s];
  }
  uint8_t* target = mesh_at(x->m, x->t, x->step, address[0], weft_dtype_size(i->destination_dtype));
  double value = mesh_combine(i->op, source[0], source[1], source[2], weft_dtype_load(i->destination_dtype, target));
  weft_dtype_store(i->destination_dtype, value, target);
}

static inline void mesh_chain_point(void* self, const int64_t* address) {
  mesh_copy_t* x = self;
  uint8_t* memory = mesh_at(x->m, x->t, x->step, address[0], x->size);
  size_t at = (size_t)x->position++ * x->size;
  double value =
      mesh_combine(x->i->op, weft_dtype_load(x->i->dtype, x->data + at), weft_dtype_load(x->i->dtype, memory), 0, 0);
  weft_dtype_store(x->i->dtype, value, x->out ? x->out + at : memory);
}

static inline bool mesh_chain(mesh_t* m, mesh_tile_t* t, const weft_instruction_t* i) {
  int32_t in = mesh_find_stream(m, t->tile->tile, i->colour, true);
  if (!mesh_complete(m, in, t->step)) return false;
  mesh_copy_t x = {.m = m, .t = t, .size = weft_dtype_size(i->dtype), .data = m->stream[in].step[t->step].data, .i = i};
  if (i->out_colour >= 0) {
    mesh_payload_t* p = &m->stream[mesh_find_stream(m, t->tile->tile, i->out_colour, false)].step[t->step];
    x.out = p->data;
    ++p->arrived;
  }
  mesh_nest(i, 1, t->step, mesh_chain_point, &x);
  assert_int_equal(x.position, m->fabric->stream[in].elements);
  return true;
}

static inline void mesh_post_send(mesh_t* m, mesh_tile_t* t, const weft_instruction_t* i) {
  int32_t stream = mesh_find_stream(m, t->tile->tile, i->colour, false);
  int32_t source = mesh_source_index(m, stream, t->tile->tile);
  bool repeat = i->flags & WEFT_ISA_FLAG_REPEAT;
  for (int32_t step = repeat ? 0 : t->step; step < (repeat ? m->steps : t->step + 1); ++step)
    mesh_ok(WEFT_ARRAY_PUSH(mesh_allocator(), &t->sends, (mesh_send_t){*i, stream, source, step, true}));
  for (size_t s = 0; m->eager && s < t->sends.count; ++s)
    if (t->sends.data[s].pending) mesh_leave(m, t, &t->sends.data[s]);
}

static inline mesh_receive_t* mesh_find_receive(mesh_tile_t* t, int32_t colour) {
  for (size_t r = 0; r < t->receives.count; ++r)
    if (t->receives.data[r].instruction.colour == colour) return &t->receives.data[r];
  return NULL;
}

// Stores what has arrived for the receives before step `end`. False: something is missing.
static inline bool mesh_store(mesh_t* m, mesh_tile_t* t, mesh_receive_t* receive, int32_t end) {
  int32_t stream = mesh_find_stream(m, t->tile->tile, receive->instruction.colour, true);
  for (; receive->stored < end && receive->stored < m->steps; ++receive->stored) {
    if (!mesh_complete(m, stream, receive->stored)) return false;
    const uint8_t* data = m->stream[stream].step[receive->stored].data;
    assert_int_not_equal(mesh_receive(m, t, &receive->instruction, receive->stored, data), 0);
  }
  return true;
}

static inline void mesh_post_receive(mesh_t* m, mesh_tile_t* t, const weft_instruction_t* i) {
  mesh_receive_t* receive = mesh_find_receive(t, i->colour);
  bool again = i->opcode == WEFT_OPCODE_AGAIN, repeat = i->flags & WEFT_ISA_FLAG_REPEAT;
  if (!receive) {
    assert_false(again);
    mesh_ok(WEFT_ARRAY_PUSH(mesh_allocator(), &t->receives, (mesh_receive_t){.instruction = *i}));
    receive = &t->receives.data[t->receives.count - 1];
  } else if (!again) {
    assert_int_equal(receive->posted, receive->waited);
    receive->instruction = *i;
  }
  receive->posted += repeat ? m->steps : 1;
  const weft_instruction_t* recv = &receive->instruction;
  assert_true(repeat ||
              receive->posted - receive->waited <= (recv->flags & WEFT_ISA_FLAG_RING ? recv->ring[0].depth : 1));
}

static inline bool mesh_wait_receive(mesh_t* m, mesh_tile_t* t, int32_t colour) {
  mesh_receive_t* receive = mesh_find_receive(t, colour);
  if (!receive || receive->waited == receive->posted) return true;
  int32_t end = receive->instruction.flags & WEFT_ISA_FLAG_REPEAT ? receive->posted : receive->waited + 1;
  if (!mesh_store(m, t, receive, end)) return false;
  receive->waited = end;
  return true;
}

// One instruction. False: it has to wait.
static inline bool mesh_step(mesh_t* m, mesh_tile_t* t) {
  weft_instruction_t i;
  mesh_ok(weft_isa_decode(t->words + t->pc, t->word_count - t->pc, &i));
  for (size_t r = 0; m->eager && r < t->receives.count; ++r)
    (void)mesh_store(m, t, &t->receives.data[r], t->receives.data[r].posted);
  mesh_copy_t x = {.m = m, .t = t, .step = t->step, .i = &i};
  switch (i.opcode) {
  case WEFT_OPCODE_HALT:
    for (size_t r = 0; r < t->receives.count; ++r) assert_true(t->receives.data[r].waited >= m->steps);
    for (size_t s = 0; s < t->sends.count; ++s) assert_false(t->sends.data[s].pending);
    t->halted = true;
    break;
  case WEFT_OPCODE_TENSOR:
    mesh_nest(&i, 1 + weft_op_source_count(i.op), t->step, mesh_compute, &x);
    break;
  case WEFT_OPCODE_SEND:
    mesh_post_send(m, t, &i);
    break;
  case WEFT_OPCODE_RECV:
  case WEFT_OPCODE_AGAIN:
    mesh_post_receive(m, t, &i);
    break;
  case WEFT_OPCODE_CHAIN:
    if (!mesh_chain(m, t, &i)) return false;
    break;
  case WEFT_OPCODE_WAIT_SEND:
    for (size_t s = 0; s < t->sends.count; ++s)
      if (t->sends.data[s].pending && t->sends.data[s].instruction.colour == i.colour)
        mesh_leave(m, t, &t->sends.data[s]);
    break;
  case WEFT_OPCODE_WAIT_RECV:
    if (!mesh_wait_receive(m, t, i.colour)) return false;
    break;
  case WEFT_OPCODE_STEPS:
    t->body = t->pc + (size_t)i.length;
    break;
  case WEFT_OPCODE_END_STEPS:
    if (++t->step < m->steps) {
      t->pc = t->body;
      return true;
    }
    t->step = 0;
    break;
  default:
    fail();
  }
  t->pc += (size_t)i.length;
  return true;
}

static inline void mesh_run(mesh_t* m) {
  for (;;) {
    bool moved = false, running = false;
    for (size_t n = 0; n < m->tile_count; ++n) {
      mesh_tile_t* t = &m->tile[n];
      while (!t->halted && mesh_step(m, t)) moved = true;
      running |= !t->halted;
    }
    if (!running) return;
    for (size_t n = 0; !moved && n < m->tile_count; ++n) // only when nothing else can happen does data leave
      for (size_t s = 0; s < m->tile[n].sends.count; ++s)
        if (m->tile[n].sends.data[s].pending) {
          mesh_leave(m, &m->tile[n], &m->tile[n].sends.data[s]);
          moved = true;
        }
    if (!moved) fail_msg("deadlock");
  }
}

static inline void mesh_create(const weft_fabric_t* fabric, const weft_machine_t* machine, const weft_image_t* image,
                               int32_t steps, mesh_t* m) {
  *m = (mesh_t){.fabric = fabric, .machine = machine, .image = image, .steps = steps, .tile_count = image->tiles_count};
  assert_in_range(steps, 1, MESH_STEPS);
  m->stream = test_calloc((size_t)fabric->stream_count + 1, sizeof(*m->stream));
  for (int32_t s = 0; s < fabric->stream_count; ++s)
    for (int32_t k = 0; k < steps; ++k)
      m->stream[s].step[k].data =
          test_calloc((size_t)fabric->stream[s].elements + 1, weft_dtype_size(fabric->stream[s].dtype));
  m->tile = test_calloc(image->tiles_count, sizeof(*m->tile));
  for (size_t n = 0; n < image->tiles_count; ++n) {
    mesh_tile_t* t = &m->tile[n];
    t->tile = &image->tiles[n];
    t->word_count = image->programs[t->tile->program].code_words;
    t->words = test_calloc(t->word_count, sizeof(*t->words));
    weft_image_tile_program(image, t->tile, t->words);
    if (t->tile->tile == WEFT_HOST_TILE) {
      m->host_bytes = t->tile->memory_bytes;
      m->host = test_calloc((size_t)steps, m->host_bytes);
      continue;
    }
    t->memory = test_calloc(t->tile->memory_bytes, 1);
    for (uint32_t s = 0; s < t->tile->segment_count; ++s) {
      const weft_image_segment_t* segment = &image->segments[t->tile->segments + s];
      assert_true(segment->address >= t->word_count * sizeof(uint32_t)); // not over the code
      memcpy(t->memory + segment->address, image->consts + segment->offset, segment->size);
    }
  }
}

static inline void mesh_destroy(mesh_t* m) {
  for (int32_t s = 0; s < m->fabric->stream_count; ++s)
    for (int32_t k = 0; k < m->steps; ++k) test_free(m->stream[s].step[k].data);
  test_free(m->stream);
  for (size_t n = 0; n < m->tile_count; ++n) {
    WEFT_ARRAY_FREE(mesh_allocator(), &m->tile[n].sends);
    WEFT_ARRAY_FREE(mesh_allocator(), &m->tile[n].receives);
    test_free(m->tile[n].words);
    if (m->tile[n].memory) test_free(m->tile[n].memory);
  }
  test_free(m->tile);
  test_free(m->host);
}
