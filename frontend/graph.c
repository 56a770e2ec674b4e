#include "frontend/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char* weft_onnx_node_name(const Onnx__NodeProto* node) {
  if (node->name && node->name[0]) return node->name;
  return node->n_output ? weft_onnx_text(node->output[0]) : "";
}

static int compare_names(const void* a, const void* b) {
  const weft_onnx_name_t *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : x->producer < y->producer ? -1 : x->producer > y->producer;
}

static int compare_name(const void* key, const void* entry) {
  return strcmp(key, ((const weft_onnx_name_t*)entry)->name);
}

weft_onnx_name_t* weft_onnx_graph_find(const weft_onnx_graph_t* graph, const char* name) {
  if (!graph->name_count) return NULL;
  return bsearch(name, graph->names, graph->name_count, sizeof(weft_onnx_name_t), compare_name);
}

weft_onnx_name_t* weft_onnx_graph_resolve(const weft_onnx_graph_t* graph, const char* name) {
  weft_onnx_name_t* entry = NULL;
  for (; graph && !entry; graph = graph->outer) entry = weft_onnx_graph_find(graph, name);
  return entry;
}

bool weft_onnx_is_default_domain(const char* domain) {
  return weft_onnx_text(domain)[0] == 0 || strcmp(domain, "ai.onnx") == 0;
}

int64_t weft_onnx_graph_opset(const weft_onnx_graph_t* graph, const char* domain) {
  int64_t version = 0;
  bool is_default = weft_onnx_is_default_domain(domain);
  for (size_t i = 0; i < graph->opset_count; ++i) {
    const Onnx__OperatorSetIdProto* opset = graph->opset[i];
    if (is_default ? weft_onnx_is_default_domain(opset->domain) : strcmp(weft_onnx_text(opset->domain), domain) == 0)
      version = opset->version;
  }
  return version;
}

static weft_status_t describe_producer(weft_arena_t* arena, const weft_onnx_graph_t* graph, int32_t producer,
                                       const char** out) {
  if (producer >= 0) return weft_arena_printf(arena, out, "node %s", graph->label[producer]);
  *out = producer == WEFT_ONNX_FROM_INPUT ? "a graph input" : "an initializer";
  return weft_ok();
}

// Before IR version 4 an initializer was listed among the inputs too; the initializer is kept then.
static weft_status_t remove_duplicates(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  size_t kept = 0;
  for (size_t i = 0; i < graph->name_count; ++i) {
    weft_onnx_name_t* last = kept ? &graph->names[kept - 1] : NULL;
    if (!last || strcmp(last->name, graph->names[i].name) != 0) {
      graph->names[kept++] = graph->names[i];
      continue;
    }
    if (last->producer == WEFT_ONNX_FROM_INITIALIZER && graph->names[i].producer == WEFT_ONNX_FROM_INPUT) continue;
    const char *first, *second;
    TRY(describe_producer(arena, graph, last->producer, &first));
    TRY(describe_producer(arena, graph, graph->names[i].producer, &second));
    return weft_error(INVALID_INPUT, "value '%s' is made twice: by %s and by %s", last->name, first, second);
  }
  graph->name_count = kept;
  return weft_ok();
}

static weft_status_t collect_names(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  const Onnx__GraphProto* proto = graph->proto;
  size_t count = proto->n_input + proto->n_initializer;
  for (size_t i = 0; i < proto->n_node; ++i) count += proto->node[i]->n_output;
  TRY(WEFT_ARENA_NEW(arena, count + 1, &graph->names));
  weft_onnx_name_t* at = graph->names;
  for (size_t i = 0; i < proto->n_input; ++i)
    *at++ = (weft_onnx_name_t){weft_onnx_text(proto->input[i]->name), WEFT_ONNX_FROM_INPUT, NULL, false};
  for (size_t i = 0; i < proto->n_initializer; ++i)
    *at++ = (weft_onnx_name_t){weft_onnx_text(proto->initializer[i]->name), WEFT_ONNX_FROM_INITIALIZER, NULL, false};
  for (size_t i = 0; i < proto->n_node; ++i)
    for (size_t j = 0; j < proto->node[i]->n_output; ++j)
      if (weft_onnx_text(proto->node[i]->output[j])[0])
        *at++ = (weft_onnx_name_t){proto->node[i]->output[j], (int32_t)i, NULL, false};
  graph->name_count = (size_t)(at - graph->names);
  qsort(graph->names, graph->name_count, sizeof(*graph->names), compare_names);
  return remove_duplicates(arena, graph);
}

// --- What a node needs

static weft_status_t add_uses_of_body(weft_arena_t* arena, const Onnx__GraphProto* body, weft_onnx_uses_t* uses,
                                      size_t room);

// `inside`: the graph that the node is in, as far as its names do not come from around it; NULL: all count.
static weft_status_t add_uses(weft_arena_t* arena, const Onnx__NodeProto* node, const weft_onnx_graph_t* inside,
                              weft_onnx_uses_t* uses, size_t room) {
  size_t first = uses->count, kept = first;
  for (size_t i = 0; i < node->n_input && uses->count < room; ++i)
    if (weft_onnx_text(node->input[i])[0]) uses->name[uses->count++] = node->input[i];
  for (size_t i = 0; i < node->n_attribute; ++i) {
    const Onnx__AttributeProto* attribute = node->attribute[i];
    if (attribute->g) TRY(add_uses_of_body(arena, attribute->g, uses, room));
    for (size_t j = 0; j < attribute->n_graphs; ++j) TRY(add_uses_of_body(arena, attribute->graphs[j], uses, room));
  }
  for (size_t i = first; i < uses->count && inside; ++i)
    if (!weft_onnx_graph_find(inside, uses->name[i])) uses->name[kept++] = uses->name[i];
  if (inside) uses->count = kept;
  return weft_ok();
}

static weft_status_t add_uses_of_body(weft_arena_t* arena, const Onnx__GraphProto* body, weft_onnx_uses_t* uses,
                                      size_t room) {
  weft_onnx_graph_t inside = {.proto = body};
  TRY(collect_names(arena, &inside));
  for (size_t i = 0; i < body->n_node; ++i) TRY(add_uses(arena, body->node[i], &inside, uses, room));
  for (size_t i = 0; i < body->n_output && uses->count < room; ++i)
    if (!weft_onnx_graph_find(&inside, weft_onnx_text(body->output[i]->name)))
      uses->name[uses->count++] = weft_onnx_text(body->output[i]->name);
  return weft_ok();
}

// How many names a node and its bodies mention at most.
static size_t count_mentions(const Onnx__NodeProto* node);
static size_t count_mentions_of_body(const Onnx__GraphProto* body) {
  size_t count = body->n_output;
  for (size_t i = 0; i < body->n_node; ++i) count += count_mentions(body->node[i]);
  return count;
}
static size_t count_mentions(const Onnx__NodeProto* node) {
  size_t count = node->n_input;
  for (size_t i = 0; i < node->n_attribute; ++i) {
    if (node->attribute[i]->g) count += count_mentions_of_body(node->attribute[i]->g);
    for (size_t j = 0; j < node->attribute[i]->n_graphs; ++j)
      count += count_mentions_of_body(node->attribute[i]->graphs[j]);
  }
  return count;
}

static weft_status_t collect_uses(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  TRY(WEFT_ARENA_NEW(arena, graph->proto->n_node + 1, &graph->uses));
  for (size_t i = 0; i < graph->proto->n_node; ++i) {
    size_t room = count_mentions(graph->proto->node[i]);
    TRY(WEFT_ARENA_NEW(arena, room + 1, &graph->uses[i].name));
    TRY(add_uses(arena, graph->proto->node[i], NULL, &graph->uses[i], room));
  }
  return weft_ok();
}

// --- Order

// Depth first from each node in the file's order; the stack is our own, so that a long chain is no problem.
typedef struct visit_t {
  int32_t node;
  size_t use; // the next to look at
} visit_t;
typedef enum mark_e { UNSEEN, OPEN, DONE } mark_e;

static weft_status_t cycle_error(weft_arena_t* arena, const weft_onnx_graph_t* graph, const visit_t* stack,
                                 size_t depth, int32_t back_to) {
  weft_text_t text;
  weft_text_initialize(arena->allocator, &text);
  size_t first = 0;
  while (stack[first].node != back_to) ++first;
  weft_status_t status = weft_ok();
  for (size_t i = depth; i-- > first && !status;) // in the direction of the data
    status = weft_text_printf(&text, "%s -> ", graph->label[stack[i].node]);
  if (!status) status = weft_text_printf(&text, "%s", graph->label[stack[depth - 1].node]);
  if (!status) status = weft_error(INVALID_INPUT, "the graph has a cycle: %s", text.data);
  weft_text_deinitialize(&text);
  return status;
}

static weft_status_t visit_from(weft_arena_t* arena, weft_onnx_graph_t* graph, int32_t root, mark_e* marks,
                                visit_t* stack, size_t* order_count) {
  size_t depth = 0;
  stack[depth++] = (visit_t){root, 0};
  marks[root] = OPEN;
  while (depth) {
    visit_t* top = &stack[depth - 1];
    const weft_onnx_uses_t* uses = &graph->uses[top->node];
    if (top->use == uses->count) {
      marks[top->node] = DONE;
      graph->order[(*order_count)++] = top->node;
      --depth;
      continue;
    }
    const char* name = uses->name[top->use++];
    const weft_onnx_name_t* entry = weft_onnx_graph_find(graph, name);
    if (!entry && weft_onnx_graph_resolve(graph, name)) continue; // made before this graph is looked at
    if (!entry)
      return weft_error(INVALID_INPUT,
                        "node %s: input '%s' is made by no node and is neither a graph input nor an initializer",
                        graph->label[top->node], name);
    if (entry->producer < 0 || marks[entry->producer] == DONE) continue;
    if (marks[entry->producer] == OPEN) return cycle_error(arena, graph, stack, depth, entry->producer);
    marks[entry->producer] = OPEN;
    stack[depth++] = (visit_t){entry->producer, 0};
  }
  return weft_ok();
}

static weft_status_t sort_nodes(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  size_t count = graph->proto->n_node, order_count = 0;
  mark_e* marks;
  visit_t* stack;
  TRY(WEFT_ARENA_NEW(arena, count + 1, &graph->order));
  TRY(WEFT_ARENA_NEW(arena, count + 1, &marks));
  TRY(WEFT_ARENA_NEW(arena, count + 1, &stack));
  for (size_t i = 0; i < count; ++i)
    if (marks[i] == UNSEEN) TRY(visit_from(arena, graph, (int32_t)i, marks, stack, &order_count));
  return weft_ok();
}

weft_status_t weft_onnx_graph_label(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  const Onnx__GraphProto* proto = graph->proto;
  for (size_t i = 0; i < proto->n_node; ++i)
    TRY(weft_arena_printf(arena, &graph->label[i], "%s '%s%s'", weft_onnx_text(proto->node[i]->op_type),
                          weft_onnx_text(graph->prefix), weft_onnx_node_name(proto->node[i])));
  return weft_ok();
}

weft_status_t weft_onnx_graph_build(weft_arena_t* arena, weft_onnx_graph_t* graph) {
  size_t count = graph->proto->n_node;
  if (count >= INT32_MAX) return weft_error(INVALID_INPUT, "the graph has %zu nodes", count);
  TRY(WEFT_ARENA_NEW(arena, count + 1, &graph->label));
  TRY(weft_onnx_graph_label(arena, graph));
  TRY(collect_names(arena, graph));
  TRY(collect_uses(arena, graph));
  return sort_nodes(arena, graph);
}
