// Runs ONNX's conformance cases through the whole path and compares with what is expected: see docs/conformance.md.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/options.h"
#include "passes/passes.h"
#include "tests/conformance/expected.h"
#include "tests/conformance/pool.h"

#define DEBIAN "/usr/share/libonnx-testdata/data/"
// name, folder (relative ones lie in the test data), what its cases need unless options say otherwise: tiles a side of
// the meshes, seconds and megabytes for a case. The light models are whole image classifiers.
#define SETS(X)                                                                                                        \
  X("node-1.22", "onnx-conformance/node", "16,32,64", 20, 6000)                                                        \
  X("simple-1.22", "onnx-conformance/simple", "16,32,64", 20, 6000)                                                    \
  X("pytorch-converted-1.22", "onnx-conformance/pytorch-converted", "16,32,64", 20, 6000)                              \
  X("pytorch-operator-1.22", "onnx-conformance/pytorch-operator", "16,32,64", 20, 6000)                                \
  X("light-1.22", "onnx-conformance/light", "128,256", 300, 12000)                                                     \
  X("node-debian", DEBIAN "node", "16,32,64", 20, 6000)                                                                \
  X("simple-debian", DEBIAN "simple", "16,32,64", 20, 6000)                                                            \
  X("pytorch-converted-debian", DEBIAN "pytorch-converted", "16,32,64", 20, 6000)                                      \
  X("pytorch-operator-debian", DEBIAN "pytorch-operator", "16,32,64", 20, 6000)                                        \
  X("microsoft", WEFT_SOURCE_DIR "/tests/conformance/microsoft", "16,32,64", 20, 6000)
typedef struct set_kind_t {
  const char* name;
  const char* folder;
  const char* mesh;
  double seconds;
  int64_t megabytes;
} set_kind_t;
static const set_kind_t sets[] = {
#define X(name, folder, mesh, seconds, megabytes) {name, folder, mesh, seconds, megabytes},
    SETS(X)
#undef X
};
enum { SET_COUNT = sizeof sets / sizeof *sets, MAX_MESHES = 8, EXIT_SKIPPED = 77 };

static const weft_command_t command = {
    .name = "conformance",
    .arguments = "[SET|FOLDER]...",
    .summary = "runs ONNX conformance cases through the whole path, on the mesh",
    .details = "Without arguments: all sets that are there. Exit code 4: a case began to pass or to fail against the\n"
               "list of expected failures; 77: nothing to run.",
    .positional_min = 0,
    .positional_max = 100,
    .options = (const weft_option_t[]){
        {"jobs", "N", "cases at once (default: cores)"},
        {"time-limit", "S", "processor time for a case (default 20; light: 300)"},
        {"memory-limit", "MB", "address space for a case (default 6000; light: 12000)"},
        {"mesh", "N,N,..", "tiles a side; the next where a case does not fit (default 16,32,64; light: 128,256)"},
        {"defects", "SPEC", "of the mesh (default rate=0.015,seed=1)"},
        {"effort", "R", "of the placer (default 0.1)"},
        {"repeat", "N", "sends the data through N times, as a stream (default 1)"},
        {"filter", "TEXT", "only cases whose name contains TEXT; nothing is compared with the list"},
        {"expected", "DIR", "the lists of expected failures"},
        {"update", NULL, "rewrites the lists"},
        {"a|all", NULL, "a line for each case, not only for those that fail"},
        {"q|quiet", NULL, "no line for cases that fail as expected"},
        {"v|verbose", NULL, "cases keep their standard error"},
        {NULL, NULL, NULL}}};

typedef struct run_t {
  weft_arena_t* arena;
  weft_options_t options;
  weft_tensor_context_t* context;
  pool_options_t pool;
  const char* expected_folder;
  const char* filter;
  int32_t sets_run, changes;
} run_t;

typedef struct set_t {
  run_t* run;
  expected_t expected;
  weft_text_t list, changes;
  int32_t total[VERDICT_COUNT], count, folded, data_sets, change_count;
  weft_status_t status;
} set_t;

static void show(const set_t* set, const char* name, const record_t* record, const char* reason, bool is_expected) {
  bool is_passed = verdict_kind[record->verdict] == 'P';
  const weft_options_t* options = &set->run->options;
  if (verdict_kind[record->verdict] != 'F' && !weft_options_has(options, "all")) return;
  if (is_expected && weft_options_has(options, "quiet")) return;
  printf("%-60s %s", name, is_passed ? verdict_text[record->verdict] : reason);
  if (is_passed)
    printf(": %dx%d, %d kernels, %lld cycles, %.2f s", record->mesh, record->mesh, record->kernels,
           (long long)record->cycles, record->seconds);
  printf("%s%s\n", record->detail[0] ? ": " : "", record->detail);
}

static weft_status_t note_change(set_t* set, const char* name, const record_t* record, const char* reason) {
  const char* listed = expected_find(&set->expected, name);
  if (!listed) listed = "";
  if (!strcmp(listed, reason)) return weft_ok();
  bool was_passed = !listed[0] || !strcmp(listed, verdict_text[VERDICT_PASSED_BOUND]);
  bool is_passed = verdict_kind[record->verdict] == 'P';
  set->change_count += was_passed != is_passed;
  return weft_text_printf(&set->changes, "  %s %s: %s -> %s\n",
                          was_passed == is_passed ? "  "
                          : is_passed             ? "++"
                                                  : "--",
                          name, listed[0] ? listed : "passed", reason[0] ? reason : "passed");
}

static weft_status_t take_record(set_t* set, const char* name, const record_t* record) {
  const char* reason = NULL;
  WEFT_RETURN_IF_ERROR(expected_reason(set->run->arena, record, &reason));
  const char* listed = expected_find(&set->expected, name);
  show(set, name, record, reason, listed && !strcmp(listed, reason));
  ++set->count;
  ++set->total[record->verdict];
  set->folded += verdict_kind[record->verdict] == 'P' && record->is_constant;
  set->data_sets += record->steps;
  WEFT_RETURN_IF_ERROR(note_change(set, name, record, reason));
  return expected_append(&set->list, name, reason);
}

static void on_done(void* self, const char* name, const record_t* record) {
  set_t* set = self;
  if (!set->status) set->status = take_record(set, name, record);
  fflush(stdout);
}

static void print_table(const set_t* set, const char* name, double seconds) {
  int32_t passed = 0, skipped = 0;
  for (int32_t i = 0; i < VERDICT_COUNT; ++i) {
    passed += verdict_kind[i] == 'P' ? set->total[i] : 0;
    skipped += verdict_kind[i] == 'S' ? set->total[i] : 0;
  }
  printf("\n%s: %d cases, %d passed, %d failed, %d skipped, %.0f s\n", name, set->count, passed,
         set->count - passed - skipped, skipped, seconds);
  for (int32_t i = 0; i < VERDICT_COUNT; ++i)
    if (set->total[i]) printf("  %5d %s\n", set->total[i], verdict_text[i]);
  printf("  of the passes %d ran on the mesh, %d were constants after import\n\n", passed - set->folded, set->folded);
}

static weft_status_t finish_set(set_t* set, const char* name, const char* list_path) {
  run_t* run = set->run;
  if (!list_path || run->filter) return weft_ok();
  if (weft_options_has(&run->options, "update")) {
    weft_text_t text;
    weft_text_initialize(run->arena->allocator, &text);
    weft_status_t status =
        weft_text_printf(&text, "# Cases that are not simply passed, and why. Written by: conformance %s --update\n%s",
                         name, set->list.data ? set->list.data : "");
    if (!status) status = weft_file_write(run->arena->allocator, list_path, text.data, text.count);
    weft_text_deinitialize(&text);
    return status;
  }
  if (set->changes.count)
    printf("%s against %s (++ passes now, -- fails now, else another reason):\n%s\n", name, list_path,
           set->changes.data);
  run->changes += set->change_count;
  return weft_ok();
}

static void filter_names(const run_t* run, case_names_t* names) {
  if (!run->filter) return;
  int32_t kept = 0;
  for (int32_t i = 0; i < names->count; ++i)
    if (strstr(names->name[i], run->filter)) names->name[kept++] = names->name[i];
  names->count = kept;
}

static weft_status_t read_needs(run_t* run, const set_kind_t* kind) {
  const weft_options_t* options = &run->options;
  const char* text = weft_options_get(options, "mesh", kind->mesh);
  int64_t megabytes = 0;
  int32_t* mesh = NULL;
  wafer_options_t* wafer = &run->pool.wafer;
  WEFT_RETURN_IF_ERROR(weft_options_real(options, "time-limit", kind->seconds, &run->pool.seconds));
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "memory-limit", 100, 1 << 30, kind->megabytes, &megabytes));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(run->arena, MAX_MESHES, &mesh));
  run->pool.bytes = megabytes * 1000000;
  wafer->mesh = mesh;
  wafer->mesh_count = 0;
  for (char* end; *text && wafer->mesh_count < MAX_MESHES; text = *end ? end + 1 : end) {
    mesh[wafer->mesh_count] = (int32_t)strtol(text, &end, 10);
    if (end == text || (*end && *end != ',') || mesh[wafer->mesh_count++] < 1)
      return weft_error(INVALID_ARGUMENT, "--mesh takes sides such as 16,32, got '%s'", text);
  }
  return weft_ok();
}

static weft_status_t run_set(run_t* run, const set_kind_t* kind, const char* folder, bool has_list) {
  if (access(folder, R_OK)) {
    printf("%s: skipped, there is no folder %s\n", kind->name, folder);
    return weft_ok();
  }
  set_t set = {.run = run};
  case_names_t names;
  const char* list_path = NULL;
  WEFT_RETURN_IF_ERROR(read_needs(run, kind));
  WEFT_RETURN_IF_ERROR(case_list(run->arena, folder, &names));
  filter_names(run, &names);
  if (has_list) {
    WEFT_RETURN_IF_ERROR(weft_arena_printf(run->arena, &list_path, "%s/%s.txt", run->expected_folder, kind->name));
    WEFT_RETURN_IF_ERROR(expected_read(run->arena, list_path, &set.expected));
  }
  weft_text_initialize(run->arena->allocator, &set.list);
  weft_text_initialize(run->arena->allocator, &set.changes);
  double start = weft_control_now();
  weft_status_t status = pool_run(run->context, &run->pool, folder, &names, on_done, &set);
  status = weft_status_join(status, set.status);
  if (!status) print_table(&set, kind->name, weft_control_now() - start);
  if (!status) status = finish_set(&set, kind->name, list_path);
  weft_text_deinitialize(&set.list);
  weft_text_deinitialize(&set.changes);
  ++run->sets_run;
  return status;
}

static weft_status_t set_folder(run_t* run, const char* folder, const char** out_folder) {
  const char* data = getenv("WEFT_TEST_DATA");
  if (folder[0] == '/') return weft_arena_strdup(run->arena, folder, out_folder);
  return weft_arena_printf(run->arena, out_folder, "%s/%s", data ? data : WEFT_SOURCE_DIR "/../shared/data", folder);
}

static weft_status_t run_named(run_t* run, const char* argument) {
  for (int32_t i = 0; i < SET_COUNT; ++i) {
    if (strcmp(argument, sets[i].name)) continue;
    const char* folder = NULL;
    WEFT_RETURN_IF_ERROR(set_folder(run, sets[i].folder, &folder));
    return run_set(run, &sets[i], folder, true);
  }
  if (!strchr(argument, '/')) return weft_error(INVALID_ARGUMENT, "no set '%s'; a folder's path has a slash", argument);
  set_kind_t other = sets[0];
  other.name = argument;
  return run_set(run, &other, argument, false);
}

static weft_status_t read_options(run_t* run) {
  const weft_options_t* options = &run->options;
  int64_t jobs = 0, repeat = 1;
  const char* temporary = getenv("TMPDIR");
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "jobs", 1, 64, sysconf(_SC_NPROCESSORS_ONLN), &jobs));
  WEFT_RETURN_IF_ERROR(weft_options_real(options, "effort", 0.1, &run->pool.wafer.effort));
  WEFT_RETURN_IF_ERROR(weft_options_int(options, "repeat", 1, 1000, 1, &repeat));
  run->pool.wafer.repeat = (int32_t)repeat;
  run->pool.jobs = (int32_t)jobs;
  run->pool.is_verbose = weft_options_has(options, "verbose");
  run->pool.wafer.defects = weft_options_get(options, "defects", "rate=0.015,seed=1");
  run->pool.wafer.scratch = temporary ? temporary : "/tmp";
  run->expected_folder = weft_options_get(options, "expected", WEFT_SOURCE_DIR "/tests/conformance/expected");
  run->filter = weft_options_get(options, "filter", NULL);
  return weft_ok();
}

static weft_status_t run_all(run_t* run) {
  WEFT_RETURN_IF_ERROR(read_options(run));
  WEFT_RETURN_IF_ERROR(weft_tensor_context_create(run->arena->allocator, &run->context));
  WEFT_RETURN_IF_ERROR(weft_passes_register(run->context));
  for (int32_t i = 0; i < run->options.positional_count; ++i)
    WEFT_RETURN_IF_ERROR(run_named(run, run->options.positional[i]));
  for (int32_t i = 0; i < SET_COUNT && !run->options.positional_count; ++i)
    WEFT_RETURN_IF_ERROR(run_named(run, sets[i].name));
  return weft_ok();
}

static weft_status_t print_help(run_t* run) {
  weft_text_t text;
  weft_text_initialize(run->arena->allocator, &text);
  weft_status_t status = weft_options_help(&command, &text);
  for (int32_t i = 0; i < SET_COUNT && !status; ++i)
    status = weft_text_printf(&text, "%s%-26s %s\n", i ? "" : "\nsets:\n", sets[i].name, sets[i].folder);
  if (!status) fputs(text.data, stdout);
  weft_text_deinitialize(&text);
  return status;
}

int main(int argc, char** argv) {
  weft_arena_t arena;
  weft_arena_initialize(weft_allocator_system(), &arena);
  run_t run = {.arena = &arena};
  weft_status_t status = weft_options_parse(&command, argc - 1, argv + 1, &arena, &run.options);
  bool is_help = !status && run.options.help;
  if (is_help)
    status = print_help(&run);
  else if (!status)
    status = run_all(&run);
  int code = weft_status_code_exit(weft_status_code(status));
  if (status) fprintf(stderr, "conformance: %s\n", weft_status_message(status));
  weft_status_free(status);
  if (!code && !is_help && !run.sets_run) code = EXIT_SKIPPED;
  if (!code && run.changes) code = weft_status_code_exit(WEFT_STATUS_MISMATCH);
  if (run.context) weft_tensor_context_destroy(run.context);
  weft_arena_deinitialize(&arena);
  return code;
}
