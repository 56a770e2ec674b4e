// Command line options from one table per subcommand: parsing, checking and --help come from it.
#pragma once
#include "base/arena.h"
#include "base/text.h"

typedef struct weft_option_t {
  const char* name;     // without dashes; a single leading "-x|" gives a short form: "o|output"
  const char* argument; // placeholder in the help, NULL: a flag
  const char* help;
} weft_option_t;

typedef struct weft_command_t {
  const char* name;
  const char* arguments; // what stands after the name: "MODEL.onnx -o OUT.wafer"
  const char* summary;   // one line
  const char* details;   // more help, may be NULL
  int32_t positional_min, positional_max;
  const weft_option_t* options; // ends with a NULL name
} weft_command_t;

typedef struct weft_options_t {
  const weft_command_t* command;
  int32_t positional_count;
  const char** positional;
  int32_t given_count; // options in the order given
  struct weft_given_t {
    const weft_option_t* option;
    const char* value;
  } * given;
  bool help;
} weft_options_t;

// Parses argv[0..argc) (without program and command name). INVALID_ARGUMENT names the option and the nearest one that
// exists.
weft_status_t weft_options_parse(const weft_command_t* command, int argc, char** argv, weft_arena_t* arena,
                                 weft_options_t* out_options);
weft_status_t weft_options_help(const weft_command_t* command, weft_text_t* text);

// The last value of an option, or `fallback`; `name` is the long one. A flag's value is "".
const char* weft_options_get(const weft_options_t* options, const char* name, const char* fallback);
bool weft_options_has(const weft_options_t* options, const char* name);
// The index-th value of a repeatable option, or NULL.
const char* weft_options_nth(const weft_options_t* options, const char* name, int32_t index);
weft_status_t weft_options_int(const weft_options_t* options, const char* name, int64_t lowest, int64_t highest,
                               int64_t fallback, int64_t* out_value);
weft_status_t weft_options_real(const weft_options_t* options, const char* name, double fallback, double* out_value);
// Splits "NAME=REST"; both in the arena.
weft_status_t weft_options_split(weft_arena_t* arena, const char* option, const char* value, const char** out_name,
                                 const char** out_rest);
