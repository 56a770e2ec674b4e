// Temporaries share memory where their lives allow it: in place over an operand that dies, else in one that died
// before.
#include <string.h>

#include "ir/fabric/split.h"
#include "passes/lowering.h"

typedef struct life_t {
  int32_t first, last; // operations; first: -1 when it is never written
} life_t;

static bool reads(const weft_operation_t* operation, int32_t buffer) {
  for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s)
    if (operation->source[s] == buffer) return true;
  return false;
}

static void measure(const weft_draft_t* draft, life_t* life) {
  for (size_t b = 0; b < draft->buffer.count; ++b) life[b] = (life_t){-1, -1};
  for (size_t i = 0; i < draft->operation.count; ++i) {
    const weft_operation_t* operation = &draft->operation.data[i];
    int32_t at = (int32_t)i, to = operation->destination;
    if (life[to].first < 0) life[to].first = at;
    life[to].last = at;
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s)
      if (operation->source[s] >= 0) life[operation->source[s]].last = at;
  }
  for (size_t b = 0; b < draft->buffer.count; ++b)
    if (draft->buffer.data[b].kind == WEFT_BUFFER_RESULT ||
        weft_split_is_carried(draft->operation.data, (int32_t)draft->operation.count, draft->sequential, (int32_t)b))
      life[b].last = INT32_MAX;
}

static void replace(weft_draft_t* draft, life_t* life, int32_t from, int32_t to) {
  for (size_t i = 0; i < draft->operation.count; ++i) {
    weft_operation_t* operation = &draft->operation.data[i];
    if (operation->destination == from) operation->destination = to;
    for (int32_t s = 0; s < WEFT_MAX_SOURCES; ++s)
      if (operation->source[s] == from) operation->source[s] = to;
  }
  if (life[from].first < life[to].first) life[to].first = life[from].first;
  if (life[from].last > life[to].last) life[to].last = life[from].last;
  life[from] = (life_t){-1, -1};
}

// Each point of the loops has an element of its own: only then does writing one leave the others' operands alone.
static bool is_pointwise(const weft_buffer_t* buffer, uint32_t loops) {
  uint32_t seen = 0;
  for (int32_t r = 0; r < buffer->rank; ++r) {
    int32_t in_row = 0;
    for (int32_t d = 0; d < WEFT_MAX_DIMS; ++d) {
      if (!buffer->row[r].coefficient[d]) continue;
      if (++in_row > 1 || seen >> d & 1) return false;
      seen |= 1u << d;
    }
  }
  return seen == loops;
}

static bool same_memory(const weft_draft_t* draft, int32_t a, int32_t b) {
  return draft->buffer.data[a].dtype == draft->buffer.data[b].dtype &&
         weft_buffer_same_layout(&draft->buffer.data[a], &draft->buffer.data[b]);
}

static void share_in_place(weft_draft_t* draft, life_t* life) {
  for (int32_t i = (int32_t)draft->operation.count - 1; i >= 0; --i) {
    const weft_operation_t* operation = &draft->operation.data[i];
    int32_t to = operation->destination;
    if (life[to].first != i || !is_pointwise(&draft->buffer.data[to], operation->loops)) continue;
    for (int32_t s = 0; s < weft_op_source_count(operation->op); ++s) {
      int32_t from = operation->source[s];
      if (from < 0 || from == to || draft->buffer.data[from].kind != WEFT_BUFFER_TEMPORARY || life[from].last != i ||
          !same_memory(draft, from, to))
        continue;
      replace(draft, life, from, to);
      break;
    }
  }
}

static void share_in_turn(weft_draft_t* draft, life_t* life) {
  for (size_t i = 0; i < draft->operation.count; ++i) {
    int32_t later = draft->operation.data[i].destination;
    if (life[later].first != (int32_t)i || draft->buffer.data[later].kind != WEFT_BUFFER_TEMPORARY) continue;
    for (size_t b = 0; b < draft->buffer.count; ++b) {
      int32_t earlier = (int32_t)b;
      if (earlier == later || draft->buffer.data[b].kind != WEFT_BUFFER_TEMPORARY || life[b].first < 0 ||
          life[b].last >= (int32_t)i || !same_memory(draft, earlier, later))
        continue;
      replace(draft, life, later, earlier);
      break;
    }
  }
}

// Leaves out buffers that no operation touches.
static void compact(weft_draft_t* draft, int32_t* to) {
  int32_t count = 0;
  for (size_t b = 0; b < draft->buffer.count; ++b) {
    bool used = draft->buffer.data[b].kind == WEFT_BUFFER_RESULT;
    for (size_t i = 0; i < draft->operation.count && !used; ++i)
      used = draft->operation.data[i].destination == (int32_t)b || reads(&draft->operation.data[i], (int32_t)b);
    to[b] = used ? count : -1;
    if (!used) continue;
    draft->buffer.data[count] = draft->buffer.data[b];
    draft->operand.data[count++] = draft->operand.data[b];
  }
  draft->buffer.count = draft->operand.count = (size_t)count;
  for (size_t i = 0; i < draft->operation.count; ++i) {
    weft_operation_t* operation = &draft->operation.data[i];
    operation->destination = to[operation->destination];
    for (int32_t s = 0; s < WEFT_MAX_SOURCES; ++s)
      if (operation->source[s] >= 0) operation->source[s] = to[operation->source[s]];
  }
}

weft_status_t weft_draft_share_storage(weft_draft_t* draft) {
  life_t* life = NULL;
  int32_t* to = NULL;
  weft_allocator_t allocator = draft->lowering->allocator;
  weft_status_t status = weft_allocator_calloc(allocator, draft->buffer.count + 1, sizeof(*life), (void**)&life);
  if (!status) status = weft_allocator_calloc(allocator, draft->buffer.count + 1, sizeof(*to), (void**)&to);
  if (!status) {
    measure(draft, life);
    share_in_place(draft, life);
    share_in_turn(draft, life);
    compact(draft, to);
  }
  weft_allocator_free(allocator, life);
  weft_allocator_free(allocator, to);
  return status;
}
