// What the subcommands share. Only this folder prints and knows exit codes.
#pragma once
#include "base/control.h"
#include "cli/options.h"

typedef struct weft_cli_t {
  weft_allocator_t allocator;
  weft_arena_t* arena; // lives as long as the command
  weft_options_t options;
  weft_control_t control; // cancellation by SIGINT and SIGTERM, --time-limit, --threads, progress
  bool quiet;
  double started;
  double shown; // when progress was last shown
  const char* shown_stage;
  bool line_open; // a progress line without newline stands on the terminal
} weft_cli_t;

typedef weft_status_t (*weft_cli_run_fn)(weft_cli_t* cli);

// The subcommands: name, file.
#define WEFT_COMMANDS(X) X(compile) X(run) X(heatmap) X(inspect) X(check) X(eval) X(opt) X(ops) X(machine)
#define X(name)                                                                                                        \
  extern const weft_command_t weft_command_##name;                                                                     \
  weft_status_t weft_cli_##name(weft_cli_t* cli);
WEFT_COMMANDS(X)
#undef X

// A line for the user on stderr, unless --quiet. Ends an open progress line first.
void weft_cli_say(weft_cli_t* cli, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Sets up `control` from --quiet, --time-limit, --threads, --verbose.
weft_status_t weft_cli_control(weft_cli_t* cli);
// Whether the user asked once, by Ctrl-C, to end what has just ended: work that kept the best so far goes on from it.
// The next Ctrl-C counts anew.
bool weft_cli_take_interrupt(weft_cli_t* cli);
// Writes text to `path`, or to standard output for NULL and "-".
weft_status_t weft_cli_emit(weft_cli_t* cli, const char* path, const weft_text_t* text);

// Options that several commands have.
#define WEFT_OPTIONS_CONTROL                                                                                           \
  {"time-limit", "S", "stop after S seconds (exit code 3)"},                                                           \
      {"threads", "N", "at most N threads (default: all cores); never changes results"},                               \
      {"q|quiet", NULL, "no progress"}, {                                                                              \
    "v|verbose", NULL, "table lines of the annealer and the router"                                                    \
  }
#define WEFT_OPTIONS_MACHINE                                                                                           \
  {"machine", "SPEC", "wse1, wse2, wse3, mesh:WxH or an XML file (default mesh:32x32)"}, {                             \
    "defects", "SPEC", "a defect file, or rate=0.01,seed=7 (default: none)"                                            \
  }
