#include "cli/report.h"

#include <string.h>

static const char* const becomes_names[] = {
#define X(name, text) text,
    WEFT_FRONTEND_BECOMES(X)
#undef X
};

static const weft_alternative_t* chosen(const weft_fabric_t* fabric, const weft_kernel_t* kernel) {
  return fabric->stage >= WEFT_STAGE_PLACED ? &kernel->alternative[kernel->chosen] : NULL;
}

// What a step would be shorter without. Memory: two buffers for what streams bring do not fit, so that streams and
// arithmetic wait for each other. Link: the busiest ramp, or the reduce chain, takes longer than the arithmetic.
static const char* bound_by(const weft_alternative_t* a) {
  int64_t arithmetic = a->cycles - a->chain_cycles;
  if (!a->doubled && a->stream_cycles > 0) return "memory";
  return a->stream_cycles > a->cycles || a->chain_cycles > arithmetic ? "link" : "compute";
}

json_t* weft_cli_report_kernels(const weft_fabric_t* fabric) {
  json_t* list = json_array();
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const weft_kernel_t* kernel = &fabric->kernel[i];
    const weft_alternative_t* a = chosen(fabric, kernel);
    json_t* entry = json_pack("{s:s, s:s}", "name", kernel->name, "nodes", kernel->nodes ? kernel->nodes : "");
    if (a) {
      json_object_update_new(
          entry, json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:[i,i,i,i]}", "grid_height", a->gy,
                           "grid_width", a->gx, "tiles", (json_int_t)a->gy * a->gx, "step_cycles",
                           (json_int_t)a->step_cycles, "compute_cycles", (json_int_t)(a->cycles - a->chain_cycles),
                           "chain_cycles", (json_int_t)a->chain_cycles, "stream_cycles", (json_int_t)a->stream_cycles,
                           "bytes_per_tile", (json_int_t)a->bytes, "bound_by", bound_by(a), "region", kernel->region.x,
                           kernel->region.y, kernel->region.width, kernel->region.height));
    }
    json_array_append_new(list, entry);
  }
  return list;
}

// --- Nodes

// Whether a word of a kernel's list of nodes is the node or lies inside of it (a function's or a loop's:
// "Loop:name/..", "Loop:name[2]/.."). In the list, spaces within names are underscores, and a node inside has its own
// type in front.
static bool is_of_node(const char* word, size_t length, const char* node) {
  const char *type_end = memchr(word, ':', length), *name = strchr(node, ':');
  if (!type_end || !name) return false;
  size_t at = 0, type_length = (size_t)(name - node);
  bool same_type = type_length == (size_t)(type_end - word) && memcmp(word, node, type_length) == 0;
  const char* inside = type_end + 1;
  size_t left = length - (size_t)(inside - word);
  for (++name; name[at] && at < left; ++at)
    if (inside[at] != (name[at] == ' ' ? '_' : name[at])) return false;
  if (name[at]) return false;
  return at == left ? same_type : inside[at] == '/' || inside[at] == '[';
}

static bool does_work_of(const weft_kernel_t* kernel, const char* node) {
  for (const char* at = kernel->nodes ? kernel->nodes : ""; *at;) {
    size_t length = strcspn(at, " ");
    if (is_of_node(at, length, node)) return true;
    at += length + (at[length] == ' ');
  }
  return false;
}

// A kernel counts in full for each of its nodes. becomes NULL: not known.
static json_t* describe_node(const weft_fabric_t* fabric, const char* name, const char* becomes) {
  json_t *entry = json_pack("{s:s}", "node", name), *kernels = json_array();
  int64_t tiles = 0, bytes = 0, slowest = -1;
  const char* bound = NULL;
  for (int32_t i = 0; i < fabric->kernel_count; ++i) {
    const weft_kernel_t* kernel = &fabric->kernel[i];
    const weft_alternative_t* a = chosen(fabric, kernel);
    if (!does_work_of(kernel, name)) continue;
    json_array_append_new(kernels, json_string(kernel->name));
    if (!a) continue;
    tiles += (int64_t)a->gy * a->gx;
    if (a->bytes > bytes) bytes = a->bytes;
    if (a->step_cycles <= slowest) continue;
    slowest = a->step_cycles;
    bound = bound_by(a);
  }
  // Arithmetic without a kernel: passes made it part of its neighbours', or found that nobody needs it.
  bool is_merged = becomes && strcmp(becomes, becomes_names[WEFT_FRONTEND_COMPUTATION]) == 0 &&
                   fabric->kernel_count > 0 && json_array_size(kernels) == 0;
  const char* fate = json_array_size(kernels) ? "kernels" : is_merged ? "merged" : becomes;
  if (becomes) json_object_set_new(entry, "becomes", json_string(fate));
  json_object_set_new(entry, "kernels", kernels);
  if (slowest >= 0)
    json_object_update_new(entry, json_pack("{s:I, s:I, s:I, s:s}", "tiles", (json_int_t)tiles, "bytes_per_tile",
                                            (json_int_t)bytes, "step_cycles", (json_int_t)slowest, "bound_by", bound));
  return entry;
}

static bool is_listed(json_t* list, const char* word) {
  size_t index;
  json_t* entry;
  json_array_foreach(list, index,
                     entry) if (strcmp(json_string_value(json_object_get(entry, "node")), word) == 0) return true;
  return false;
}

static json_t* nodes_of_kernels(const weft_fabric_t* fabric) {
  json_t* list = json_array();
  for (int32_t i = 0; i < fabric->kernel_count; ++i)
    for (const char* at = fabric->kernel[i].nodes ? fabric->kernel[i].nodes : ""; *at;) {
      size_t length = strcspn(at, " ");
      json_t* word = json_stringn(at, length);
      if (word && !is_listed(list, json_string_value(word)))
        json_array_append_new(list, describe_node(fabric, json_string_value(word), NULL));
      json_decref(word);
      at += length + (at[length] == ' ');
    }
  return list;
}

json_t* weft_cli_report_nodes(const weft_fabric_t* fabric, const weft_model_t* model) {
  if (!model->node_count) return nodes_of_kernels(fabric);
  json_t* list = json_array();
  for (int32_t i = 0; i < model->node_count; ++i)
    json_array_append_new(list, describe_node(fabric, model->node[i].name, becomes_names[model->node[i].becomes]));
  return list;
}
