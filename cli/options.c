#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static const char* long_name(const weft_option_t* option) {
  const char* bar = strchr(option->name, '|');
  return bar ? bar + 1 : option->name;
}

static char short_name(const weft_option_t* option) {
  return option->name[1] == '|' ? option->name[0] : 0;
}

static weft_status_t unknown_option(const weft_command_t* command, const char* word) {
  const char* names[64];
  size_t count = 0;
  for (const weft_option_t* o = command->options; o->name && count < 64; ++o) names[count++] = long_name(o);
  const char* nearest = weft_nearest_word(word + strspn(word, "-"), names, count);
  if (nearest) {
    return weft_error(INVALID_ARGUMENT, "weft %s has no option %s; did you mean --%s?", command->name, word, nearest);
  }
  return weft_error(INVALID_ARGUMENT, "weft %s has no option %s; see weft %s --help", command->name, word,
                    command->name);
}

weft_status_t weft_options_parse(const weft_command_t* command, int argc, char** argv, weft_arena_t* arena,
                                 weft_options_t* out_options) {
  *out_options = (weft_options_t){.command = command};
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)argc + 1, &out_options->positional));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(arena, (size_t)argc + 1, &out_options->given));
  bool only_positional = false;
  for (int i = 0; i < argc; ++i) {
    const char* word = argv[i];
    if (only_positional || word[0] != '-' || !word[1]) {
      out_options->positional[out_options->positional_count++] = word;
      continue;
    }
    if (!strcmp(word, "--")) {
      only_positional = true;
      continue;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
      out_options->help = true;
      return weft_ok();
    }
    const weft_option_t* found = NULL;
    const char* value = NULL;
    for (const weft_option_t* o = command->options; o->name && !found; ++o) {
      if (word[1] == '-') {
        size_t length = strlen(long_name(o));
        if (strncmp(word + 2, long_name(o), length)) continue;
        if (word[2 + length] && word[2 + length] != '=') continue;
        found = o;
        if (word[2 + length] == '=') value = word + 3 + length;
      } else if (word[1] == short_name(o)) {
        found = o;
        if (word[2]) value = word + 2;
      }
    }
    if (!found) return unknown_option(command, word);
    if (!found->argument && value) {
      return weft_error(INVALID_ARGUMENT, "--%s takes no value, got '%s'", long_name(found), value);
    }
    if (found->argument && !value) {
      if (i + 1 >= argc) {
        return weft_error(INVALID_ARGUMENT, "--%s needs a value: --%s %s", long_name(found), long_name(found),
                          found->argument);
      }
      value = argv[++i];
    }
    out_options->given[out_options->given_count].option = found;
    out_options->given[out_options->given_count++].value = value ? value : "";
  }
  if (out_options->positional_count < command->positional_min ||
      out_options->positional_count > command->positional_max) {
    return weft_error(INVALID_ARGUMENT, "usage: weft %s %s", command->name, command->arguments);
  }
  return weft_ok();
}

weft_status_t weft_options_help(const weft_command_t* command, weft_text_t* text) {
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "weft %s: %s\n\nusage: weft %s %s\n", command->name, command->summary,
                                        command->name, command->arguments));
  if (command->details) WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\n%s\n", command->details));
  WEFT_RETURN_IF_ERROR(weft_text_printf(text, "\noptions:\n"));
  for (const weft_option_t* o = command->options; o->name; ++o) {
    char left[64];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", short_name(o) ? "-" : " ", short_name(o) ? short_name(o) : ' ',
             short_name(o) ? ", " : "  ", long_name(o), o->argument ? " " : "", o->argument ? o->argument : "");
    WEFT_RETURN_IF_ERROR(weft_text_printf(text, "  %-34s %s\n", left, o->help));
  }
  return weft_text_printf(text, "  %-34s %s\n", "-h, --help", "this text");
}

const char* weft_options_nth(const weft_options_t* options, const char* name, int32_t index) {
  for (int32_t i = 0; i < options->given_count; ++i) {
    if (!strcmp(long_name(options->given[i].option), name) && index-- == 0) return options->given[i].value;
  }
  return NULL;
}

const char* weft_options_get(const weft_options_t* options, const char* name, const char* fallback) {
  const char* value = fallback;
  for (int32_t i = 0; i < options->given_count; ++i) {
    if (!strcmp(long_name(options->given[i].option), name)) value = options->given[i].value;
  }
  return value;
}

bool weft_options_has(const weft_options_t* options, const char* name) {
  return weft_options_nth(options, name, 0) != NULL;
}

weft_status_t weft_options_int(const weft_options_t* options, const char* name, int64_t lowest, int64_t highest,
                               int64_t fallback, int64_t* out_value) {
  const char* text = weft_options_get(options, name, NULL);
  *out_value = fallback;
  if (!text) return weft_ok();
  char* end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || value < lowest || value > highest) {
    return weft_error(INVALID_ARGUMENT, "--%s takes a whole number from %lld to %lld, got '%s'", name,
                      (long long)lowest, (long long)highest, text);
  }
  *out_value = value;
  return weft_ok();
}

weft_status_t weft_options_real(const weft_options_t* options, const char* name, double fallback, double* out_value) {
  const char* text = weft_options_get(options, name, NULL);
  *out_value = fallback;
  if (!text) return weft_ok();
  char* end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= 0) || value > 1e300) {
    return weft_error(INVALID_ARGUMENT, "--%s takes a number that is not negative, got '%s'", name, text);
  }
  *out_value = value;
  return weft_ok();
}

weft_status_t weft_options_split(weft_arena_t* arena, const char* option, const char* value, const char** out_name,
                                 const char** out_rest) {
  const char* equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) {
    return weft_error(INVALID_ARGUMENT, "--%s takes NAME=VALUE, got '%s'", option, value);
  }
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, out_name, "%.*s", (int)(equals - value), value));
  return weft_arena_strdup(arena, equals + 1, out_rest);
}
