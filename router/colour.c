#include "router/colour.h"

#include "base/array.h"

enum { NO_COLOUR = 0xFF };

typedef struct colouring_t {
  const weft_router_mesh_t* mesh;
  uint64_t* taken; // [tiles] bit per colour
  uint8_t* colour; // of the nodes of the net at hand; before that, what its upstream would like
  size_t capacity;
} colouring_t;

static uint8_t choose(colouring_t* c, int32_t tile, int32_t wanted) {
  uint64_t taken = c->taken[tile];
  int32_t colour = wanted, colours = c->mesh->colours;
  while (taken >> colour & 1) colour = colour + 1 == colours ? 0 : colour + 1;
  c->taken[tile] |= UINT64_C(1) << colour;
  return (uint8_t)colour;
}

// Position of a node in the list that has upstream before downstream, and back: the gather nodes are stored the other
// way round.
static int32_t position(const weft_router_tree_t* tree, int32_t node) {
  return node <= tree->gather_count ? tree->gather_count - node : node;
}

static void colour_net(colouring_t* c, const weft_router_tree_t* tree, int32_t fresh) {
  for (int32_t i = 0; i < tree->count; ++i) c->colour[i] = NO_COLOUR;
  for (int32_t p = 0; p < tree->count; ++p) {
    int32_t i = position(tree, p); // its own inverse
    const weft_router_node_t* node = &tree->node[i];
    int32_t wanted = i > tree->gather_count ? c->colour[node->link] : c->colour[i];
    c->colour[i] = choose(c, node->tile, wanted == NO_COLOUR ? fresh : wanted);
    bool gathers = i > 0 && i <= tree->gather_count;
    if (gathers && c->colour[node->link] == NO_COLOUR) c->colour[node->link] = c->colour[i];
  }
}

static weft_status_t emit_net(const colouring_t* c, const weft_router_tree_t* tree, weft_arena_t* arena,
                              weft_router_route_t* out_route) {
  out_route->entry_count = tree->count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)tree->count, &out_route->entry));
  for (int32_t i = 0; i < tree->count; ++i) {
    const weft_router_node_t* node = &tree->node[i];
    weft_router_entry_t* entry = &out_route->entry[position(tree, i)];
    *entry = (weft_router_entry_t){
        .tile = node->tile, .colour = c->colour[i], .input_count = node->input_count, .outputs = node->outputs};
    for (int k = 0; k < node->input_count; ++k) entry->input[k] = node->input[k];
    // Off the mesh, to the core or the host, it keeps its colour: unique in the router, so unique at each of its ports.
    for (int d = 0; d < WEFT_DIRECTION_COUNT; ++d)
      if (node->outputs >> d & 1) entry->output_colour[d] = c->colour[i];
  }
  for (int32_t i = 1; i < tree->count; ++i) {
    const weft_router_node_t* node = &tree->node[i];
    weft_router_entry_t* entry = &out_route->entry[position(tree, i)];
    weft_router_entry_t* other = &out_route->entry[position(tree, node->link)];
    if (i <= tree->gather_count)
      entry->output_colour[node->direction] = other->colour;
    else
      other->output_colour[weft_direction_opposite(node->direction)] = entry->colour;
  }
  return weft_ok();
}

weft_status_t weft_router_colour(const weft_router_mesh_t* mesh, int32_t net_count, const weft_router_tree_t* tree,
                                 weft_arena_t* arena, weft_router_route_t* out_route) {
  colouring_t c = {.mesh = mesh};
  weft_status_t status =
      weft_allocator_calloc(mesh->allocator, (size_t)mesh->tiles, sizeof(*c.taken), (void**)&c.taken);
  for (int32_t n = 0; !status && n < net_count; ++n) {
    status =
        weft_array_reserve(mesh->allocator, (void**)&c.colour, &c.capacity, (size_t)tree[n].count, sizeof(*c.colour));
    if (status) break;
    // Nets start from different colours, so that neighbours seldom want the same one.
    colour_net(&c, &tree[n], n % mesh->colours);
    status = emit_net(&c, &tree[n], arena, &out_route[n]);
  }
  weft_allocator_free(mesh->allocator, c.taken);
  weft_allocator_free(mesh->allocator, c.colour);
  return status;
}
