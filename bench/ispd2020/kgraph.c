#include "kgraph.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MOST_ARGUMENT = 1 << 20 }; // of a formal argument: products of four stay far inside a double's exact integers

// The text with what was read of it; a copy that ends with a zero, since a last newline may be missing.
typedef struct reader_t {
  const char *path, *start, *at;
  weft_arena_t* arena;
  ispd2020_graph_t* graph;
  int32_t most; // nodes and edges there can be
} reader_t;

static weft_status_t malformed(const reader_t* reader, const char* what) {
  int line = 1;
  for (const char* c = reader->start; c < reader->at; ++c) line += *c == '\n';
  return weft_error(INVALID_INPUT, "%s:%d: %s", reader->path, line, what);
}

static void skip_space(reader_t* reader) {
  while (isspace((unsigned char)*reader->at)) ++reader->at;
}

// Spaces may stand anywhere between tokens, also inside brackets.
static bool take(reader_t* reader, const char* token) {
  skip_space(reader);
  size_t length = strlen(token);
  if (strncmp(reader->at, token, length) != 0) return false;
  reader->at += length;
  return true;
}

static bool take_word(reader_t* reader, char* word, size_t size) {
  skip_space(reader);
  size_t length = 0;
  while (isalnum((unsigned char)reader->at[length]) || reader->at[length] == '_') ++length;
  if (!length || length >= size) return false;
  memcpy(word, reader->at, length);
  word[length] = 0;
  reader->at += length;
  return true;
}

static bool take_integer(reader_t* reader, int64_t least, int64_t most, int64_t* out_value) {
  skip_space(reader);
  char* end = NULL;
  *out_value = strtoll(reader->at, &end, 10);
  if (end == reader->at || *out_value < least || *out_value > most) return false;
  reader->at = end;
  return true;
}

// A comment; its lines `key=value` are settings.
static weft_status_t read_comment(reader_t* reader) {
  ispd2020_graph_t* graph = reader->graph;
  while (!take(reader, "*)")) {
    char word[64];
    if (!*reader->at) return malformed(reader, "the comment has no end");
    if (!take_word(reader, word, sizeof word)) {
      ++reader->at;
      continue;
    }
    if (!take(reader, "=")) continue;
    int64_t value = 0;
    const char* before = reader->at;
    if (!take_integer(reader, 0, 1 << 30, &value)) {
      reader->at = before;
      while (*reader->at && *reader->at != '\n') ++reader->at;
      continue;
    }
    if (!strcmp(word, "width")) graph->width = (int32_t)value;
    if (!strcmp(word, "height")) graph->height = (int32_t)value;
    if (!strcmp(word, "wdeltat")) graph->weight_time = (double)value;
    if (!strcmp(word, "wlength")) graph->weight_wire = (double)value;
    if (!strcmp(word, "wadapter")) graph->weight_adapter = (double)value;
    if (!strcmp(word, "memlimit")) graph->memory = value;
  }
  return weft_ok();
}

static int64_t* argument_of(ispd2020_node_t* node, const char* key) {
  static const char letters[] = "hwrsckt";
  int64_t* values[] = {&node->h, &node->w, &node->r, &node->s, &node->c, &node->k, &node->t};
  if (key[1]) return NULL;
  const char* letter = strchr(letters, tolower((unsigned char)key[0]));
  if (letter && *letter) return values[letter - letters];
  return tolower((unsigned char)key[0]) == 'f' ? &node->f : NULL;
}

// ` key=value ...` up to the end of the line; names and lists of extents are skipped.
static weft_status_t read_arguments(reader_t* reader, ispd2020_node_t* node) {
  for (;;) {
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r') ++reader->at;
    if (!*reader->at || *reader->at == '\n') break;
    char key[64];
    if (!take_word(reader, key, sizeof key) || !take(reader, "=")) return malformed(reader, "expected key=value");
    if (take(reader, "[") || take(reader, "'")) {
      char end = reader->at[-1] == '[' ? ']' : '\'';
      while (*reader->at && *reader->at != end) ++reader->at;
      if (!*reader->at) return malformed(reader, "a bracket or quote has no end");
      ++reader->at;
      continue;
    }
    int64_t value = 0;
    if (!take_integer(reader, 1, MOST_ARGUMENT, &value)) return malformed(reader, "expected a positive whole number");
    int64_t* argument = argument_of(node, key);
    if (argument) *argument = value; // others (U, the stride again) say nothing new
  }
  bool complete = true;
  if (node->kind == ISPD2020_CONV) complete = node->h && node->w && node->r && node->s && node->c && node->k && node->t;
  if (node->kind == ISPD2020_DBLOCK || node->kind == ISPD2020_CBLOCK) complete = node->h && node->w && node->f >= 4;
  return complete ? weft_ok() : malformed(reader, "a formal argument of the kernel is missing");
}

static weft_status_t find_node(const reader_t* reader, int64_t id, int32_t* out_index) {
  for (int32_t n = 0; n < reader->graph->node_count; ++n) {
    if (reader->graph->node[n].id != id) continue;
    *out_index = n;
    return weft_ok();
  }
  return malformed(reader, "a connection names a kernel that there isn't");
}

// `type[id]` and then a node's arguments, or `:port -> type[id]:port, shape:[..]..` of a connection.
static weft_status_t read_line(reader_t* reader) {
  static const char* const kinds[] = {"conv", "dblock", "cblock", "input", "output"};
  ispd2020_graph_t* graph = reader->graph;
  char word[64];
  int kind = 0;
  if (!take_word(reader, word, sizeof word)) return malformed(reader, "expected a kernel");
  while (kind < 5 && strcmp(word, kinds[kind]) != 0) ++kind;
  if (kind == 5) return malformed(reader, "unknown kind of kernel");
  int64_t id = 0;
  if (!take(reader, "[") || !take_integer(reader, 0, INT32_MAX, &id) || !take(reader, "]"))
    return malformed(reader, "expected [number]");
  if (graph->node_count >= reader->most || graph->edge_count >= reader->most)
    return malformed(reader, "too many lines");
  if (!take(reader, ":")) {
    ispd2020_node_t* node = &graph->node[graph->node_count++];
    *node = (ispd2020_node_t){.kind = kind < 3 ? (ispd2020_kind_e)kind : ISPD2020_PORT, .id = (int32_t)id};
    return read_arguments(reader, node);
  }
  ispd2020_edge_t* edge = &graph->edge[graph->edge_count++];
  WEFT_RETURN_IF_ERROR(find_node(reader, id, &edge->from));
  if (!take_word(reader, word, sizeof word) || !take(reader, "->") || !take_word(reader, word, sizeof word) ||
      !take(reader, "[") || !take_integer(reader, 0, INT32_MAX, &id) || !take(reader, "]"))
    return malformed(reader, "expected :port -> kernel[number]");
  WEFT_RETURN_IF_ERROR(find_node(reader, id, &edge->to));
  while (*reader->at && *reader->at != '\n') ++reader->at; // the port and the shape, which need not match
  return weft_ok();
}

static weft_status_t read_graph(reader_t* reader) {
  for (;;) {
    if (take(reader, "(*")) {
      WEFT_RETURN_IF_ERROR(read_comment(reader));
    } else if (skip_space(reader), *reader->at) {
      WEFT_RETURN_IF_ERROR(read_line(reader));
    } else {
      break;
    }
  }
  const ispd2020_graph_t* graph = reader->graph;
  if (graph->width < 1 || graph->height < 1 || graph->width > 1 << 13 || graph->height > 1 << 13)
    return malformed(reader, "width and height must be set, to at most 8192");
  return weft_ok();
}

weft_status_t ispd2020_graph_read(const char* path, weft_arena_t* arena, ispd2020_graph_t* out_graph) {
  *out_graph = (ispd2020_graph_t){.weight_time = 1, .weight_wire = 1, .memory = 24576};
  weft_mapping_t file;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &file));
  char* text = NULL;
  weft_status_t status = weft_arena_allocate(arena, file.size + 1, 1, (void**)&text);
  reader_t reader = {.path = path, .start = text, .at = text, .arena = arena, .graph = out_graph, .most = 1};
  if (!status) {
    memcpy(text, file.data, file.size);
    for (size_t i = 0; i < file.size; ++i) {
      reader.most += text[i] == '\n';
      if (!text[i]) text[i] = ' ';
    }
    status = WEFT_ARENA_NEW(arena, (size_t)reader.most, &out_graph->node);
  }
  if (!status) status = WEFT_ARENA_NEW(arena, (size_t)reader.most, &out_graph->edge);
  weft_file_unmap(&file);
  return status ? status : read_graph(&reader);
}
