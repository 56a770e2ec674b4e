// `weft`: turns arguments into calls, statuses into text and exit codes.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/nearest.h"
#include "cli/cli.h"

static volatile sig_atomic_t cancelled; // the one thing that a signal handler may touch
static void on_signal(int number) {
  // A second signal ends the process at once.
  if (cancelled) _exit(3);
  cancelled = number;
}

static void close_line(weft_cli_t* cli) {
  if (cli->line_open) fputs("\r\033[K", stderr);
  cli->line_open = false;
}

void weft_cli_say(weft_cli_t* cli, const char* format, ...) {
  if (cli->quiet) return;
  close_line(cli);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

static void on_table(void* self, const char* stage, const char* line) {
  weft_cli_say(self, "%-6s %s", stage, line);
}

// On a terminal one line that is rewritten; elsewhere a plain line every ten seconds, so that a log shows life.
static void on_progress(void* self, const char* stage, uint64_t done, uint64_t total) {
  weft_cli_t* cli = self;
  bool terminal = isatty(STDERR_FILENO);
  double now = weft_control_now();
  bool same = cli->shown_stage && !strcmp(cli->shown_stage, stage);
  if (now - cli->shown < (terminal ? 0.1 : 10.0)) return;
  if (!same) cli->started = now;
  cli->shown = now;
  cli->shown_stage = stage;
  char estimate[64] = "";
  double elapsed = now - cli->started;
  if (total && done && elapsed > 1) {
    snprintf(estimate, sizeof estimate, ", about %.0f s left", elapsed * (double)(total - done) / (double)done);
  }
  char line[160];
  if (total) {
    snprintf(line, sizeof line, "%s: %3.0f %%%s", stage, 100.0 * (double)done / (double)total, estimate);
  } else {
    snprintf(line, sizeof line, "%s: %llu", stage, (unsigned long long)done);
  }
  if (terminal) {
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    cli->line_open = true;
  } else {
    weft_cli_say(cli, "%s", line);
  }
}

weft_status_t weft_cli_control(weft_cli_t* cli) {
  double limit = 0;
  WEFT_RETURN_IF_ERROR(weft_options_real(&cli->options, "time-limit", 0, &limit));
  int64_t threads = 0;
  WEFT_RETURN_IF_ERROR(weft_options_int(&cli->options, "threads", 1, 1024, 0, &threads));
  cli->quiet = weft_options_has(&cli->options, "quiet");
  cli->control = (weft_control_t){.cancelled = &cancelled, .self = cli, .threads = (int32_t)threads};
  if (limit > 0) cli->control.deadline = weft_control_now() + limit;
  if (!cli->quiet) cli->control.progress = on_progress;
  if (weft_options_has(&cli->options, "verbose")) cli->control.table = on_table;
  return weft_ok();
}

bool weft_cli_take_interrupt(weft_cli_t* cli) {
  (void)cli;
  if (cancelled != SIGINT) return false;
  cancelled = 0;
  return true;
}

weft_status_t weft_cli_emit(weft_cli_t* cli, const char* path, const weft_text_t* text) {
  (void)cli;
  if (path && strcmp(path, "-"))
    return weft_file_write(cli->allocator, path, text->data ? text->data : "", text->count);
  if (fwrite(text->data ? text->data : "", 1, text->count, stdout) != text->count || fflush(stdout)) {
    return weft_error(IO, "cannot write to standard output");
  }
  return weft_ok();
}

static const struct {
  const weft_command_t* command;
  weft_cli_run_fn run;
} commands[] = {
#define X(name) {&weft_command_##name, weft_cli_##name},
    WEFT_COMMANDS(X)
#undef X
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static weft_status_t print_help(weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(
      text, "weft: compiles neural networks for a wafer-scale mesh and runs them on a simulator of it\n\n"
            "usage: weft COMMAND ...   (weft COMMAND --help for its options)\n\ncommands:\n"));
  for (size_t i = 0; i < COMMAND_COUNT; ++i) {
    WEFT_RETURN_IF_ERROR(
        weft_text_printf(text, "  %-9s %s\n", commands[i].command->name, commands[i].command->summary));
  }
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\nexit codes:\n"));
  static const struct {
    int code;
    const char* text;
  } codes[] = {{0, "fine"},
               {1, "bad usage or input"},
               {2, "does not fit or cannot be routed"},
               {3, "interrupted or time limit"},
               {4, "output differs"},
               {70, "internal error: please report it"}};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "  %-9d %s\n", codes[i].code, codes[i].text));
  }
  return weft_text_printf(text,
                          "\nfirst steps:\n"
                          "  weft compile model.onnx -o model.wafer --machine mesh:32x32 --defects rate=0.02,seed=1\n"
                          "  weft heatmap model.wafer --metric place\n"
                          "  weft run model.wafer --input NAME=input.npy --output NAME=output.npy\n");
}

static weft_status_t dispatch(weft_cli_t* cli, int argc, char** argv) {
  weft_text_t help;
  weft_text_initialize(cli->allocator, &help);
  weft_status_t status = weft_ok();
  if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    status = print_help(&help);
    if (!status && argc < 2) {
      fputs(help.data, stderr);
      status = weft_error(INVALID_ARGUMENT, "a command is missing");
    } else if (!status) {
      status = weft_cli_emit(cli, NULL, &help);
    }
  } else if (!strcmp(argv[1], "--version")) {
    puts("weft " WEFT_VERSION);
  } else {
    const char* names[COMMAND_COUNT];
    size_t found = COMMAND_COUNT;
    for (size_t i = 0; i < COMMAND_COUNT; ++i) {
      names[i] = commands[i].command->name;
      if (!strcmp(argv[1], names[i])) found = i;
    }
    if (found == COMMAND_COUNT) {
      const char* nearest = weft_nearest_word(argv[1], names, COMMAND_COUNT);
      status = nearest ? weft_error(INVALID_ARGUMENT, "no command '%s'; did you mean '%s'?", argv[1], nearest)
                       : weft_error(INVALID_ARGUMENT, "no command '%s'; see weft --help", argv[1]);
    } else {
      status = weft_options_parse(commands[found].command, argc - 2, argv + 2, cli->arena, &cli->options);
      if (!status && cli->options.help) {
        status = weft_options_help(commands[found].command, &help);
        if (!status) status = weft_cli_emit(cli, NULL, &help);
      } else if (!status) {
        status = weft_cli_control(cli);
        if (!status) status = commands[found].run(cli);
      }
    }
  }
  weft_text_deinitialize(&help);
  return status;
}

int main(int argc, char** argv) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  weft_arena_t arena;
  weft_cli_t cli = {.allocator = weft_allocator_system(),
                    .arena = &arena,
                    .started = weft_control_now(),
                    .shown = weft_control_now()};
  weft_arena_initialize(cli.allocator, &arena);
  weft_status_t status = dispatch(&cli, argc, argv);
  close_line(&cli);
  int code = weft_status_code_exit(weft_status_code(status));
  if (status) {
    fprintf(stderr, "weft: %s: %s\n", weft_status_code_text(weft_status_code(status)), weft_status_message(status));
    if (code == 70) {
      fprintf(stderr, "  (raised at %s:%d)\n", weft_status_origin_file(status), weft_status_origin_line(status));
    }
  }
  weft_status_free(status);
  weft_arena_deinitialize(&arena);
  return code;
}
