// Tiles that differ in dimensions which an operand doesn't depend on receive the same elements: their walks are worked
// out once and shared.
#include <string.h>

#include "base/checked.h"
#include "runtime-sim/walk.h"

enum { FIRST_BUCKETS = 64 };

// What a walk depends on; the rest of the instruction is left zero.
static weft_instruction_t key_of(const weft_instruction_t* recv) {
  weft_instruction_t key;
  memset(&key, 0, sizeof(key));
  key.dtype = recv->dtype;
  key.level_count = recv->level_count;
  key.tensor_rank = recv->tensor_rank;
  key.factor_count = recv->factor_count;
  key.operand_rank = recv->operand_rank;
  memcpy(key.level, recv->level, (size_t)recv->level_count * sizeof(key.level[0]));
  memcpy(key.tensor_dim, recv->tensor_dim, (size_t)recv->tensor_rank * sizeof(key.tensor_dim[0]));
  memcpy(key.factor, recv->factor, (size_t)recv->factor_count * sizeof(key.factor[0]));
  memcpy(key.operand_dim, recv->operand_dim, (size_t)recv->operand_rank * sizeof(key.operand_dim[0]));
  return key;
}

static uint64_t hash_words(uint64_t hash, const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(uint32_t)) {
    uint32_t word;
    memcpy(&word, (const uint8_t*)data + i, sizeof(word));
    hash = (hash ^ word) * UINT64_C(1099511628211);
    hash ^= hash >> 29;
  }
  return hash;
}

static uint64_t hash_of(const weft_instruction_t* recv) {
  const int32_t counts[] = {(int32_t)recv->dtype, recv->level_count, recv->tensor_rank, recv->factor_count,
                            recv->operand_rank};
  uint64_t hash = hash_words(UINT64_C(1469598103934665603), counts, sizeof(counts));
  hash = hash_words(hash, recv->level, (size_t)recv->level_count * sizeof(recv->level[0]));
  hash = hash_words(hash, recv->tensor_dim, (size_t)recv->tensor_rank * sizeof(recv->tensor_dim[0]));
  hash = hash_words(hash, recv->factor, (size_t)recv->factor_count * sizeof(recv->factor[0]));
  return hash_words(hash, recv->operand_dim, (size_t)recv->operand_rank * sizeof(recv->operand_dim[0]));
}

static bool same_walk(const weft_instruction_t* a, const weft_instruction_t* b) {
  if (a->dtype != b->dtype || a->level_count != b->level_count || a->tensor_rank != b->tensor_rank ||
      a->factor_count != b->factor_count || a->operand_rank != b->operand_rank)
    return false;
  return !memcmp(a->level, b->level, (size_t)a->level_count * sizeof(a->level[0])) &&
         !memcmp(a->tensor_dim, b->tensor_dim, (size_t)a->tensor_rank * sizeof(a->tensor_dim[0])) &&
         !memcmp(a->factor, b->factor, (size_t)a->factor_count * sizeof(a->factor[0])) &&
         !memcmp(a->operand_dim, b->operand_dim, (size_t)a->operand_rank * sizeof(a->operand_dim[0]));
}

static weft_status_t grow(weft_sim_walk_cache_t* cache) {
  size_t count = cache->bucket_count ? 2 * cache->bucket_count : FIRST_BUCKETS;
  weft_sim_walk_entry_t** buckets = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(cache->allocator, count, sizeof(*buckets), (void**)&buckets));
  for (size_t i = 0; i < cache->bucket_count; ++i) {
    for (weft_sim_walk_entry_t *entry = cache->bucket[i], *next; entry; entry = next) {
      next = entry->next;
      entry->next = buckets[entry->hash & (count - 1)];
      buckets[entry->hash & (count - 1)] = entry;
    }
  }
  weft_allocator_free(cache->allocator, cache->bucket);
  cache->bucket = buckets;
  cache->bucket_count = count;
  return weft_ok();
}

static weft_status_t insert(weft_sim_walk_cache_t* cache, const weft_instruction_t* key, uint64_t hash, int64_t limit,
                            const weft_control_t* control, weft_sim_walk_entry_t** out_entry) {
  if (cache->count >= cache->bucket_count) WEFT_RETURN_IF_ERROR(grow(cache));
  weft_sim_walk_entry_t* entry = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(cache->allocator, 1, sizeof(*entry), (void**)&entry));
  weft_status_t status = weft_sim_walk_compile(cache->allocator, key, limit, control, &entry->walk);
  if (status) {
    weft_allocator_free(cache->allocator, entry);
    return status;
  }
  entry->key = *key;
  entry->hash = hash;
  entry->limit = limit;
  entry->next = cache->bucket[hash & (cache->bucket_count - 1)];
  cache->bucket[hash & (cache->bucket_count - 1)] = entry;
  ++cache->count;
  *out_entry = entry;
  return weft_ok();
}

weft_status_t weft_sim_walk_cache_get(weft_sim_walk_cache_t* cache, const weft_instruction_t* recv, int64_t limit,
                                      const weft_control_t* control, const weft_sim_walk_t** out_walk) {
  uint64_t hash = hash_of(recv);
  weft_sim_walk_entry_t* entry = cache->bucket_count ? cache->bucket[hash & (cache->bucket_count - 1)] : NULL;
  while (entry && (entry->hash != hash || entry->limit != limit || !same_walk(&entry->key, recv))) entry = entry->next;
  if (!entry) {
    weft_instruction_t key = key_of(recv);
    WEFT_RETURN_IF_ERROR(insert(cache, &key, hash, limit, control, &entry));
  }
  *out_walk = &entry->walk;
  return weft_ok();
}

void weft_sim_walk_cache_deinitialize(weft_sim_walk_cache_t* cache) {
  for (size_t i = 0; i < cache->bucket_count; ++i) {
    for (weft_sim_walk_entry_t *entry = cache->bucket[i], *next; entry; entry = next) {
      next = entry->next;
      weft_sim_walk_deinitialize(cache->allocator, &entry->walk);
      weft_allocator_free(cache->allocator, entry);
    }
  }
  weft_allocator_free(cache->allocator, cache->bucket);
  *cache = (weft_sim_walk_cache_t){.allocator = cache->allocator};
}
