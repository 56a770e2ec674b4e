#include "cli/tensor_io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "frontend/frontend.h"

static bool ends_with(const char* text, const char* ending) {
  size_t a = strlen(text), b = strlen(ending);
  return a >= b && !strcmp(text + a - b, ending);
}

int64_t weft_tensor_spec_elements(const weft_tensor_spec_t* spec) {
  int64_t elements = 1;
  for (int32_t i = 0; i < spec->rank; ++i) elements *= spec->extent[i];
  return elements;
}

static void format_shape(char* text, size_t size, weft_dtype_e dtype, int32_t rank, const int64_t* extent) {
  size_t at = 0;
  text[0] = 0;
  for (int32_t i = 0; i < rank && at < size; ++i)
    at += (size_t)snprintf(text + at, size - at, "%lldx", (long long)extent[i]);
  if (at < size) snprintf(text + at, size - at, "%s", weft_dtype_name(dtype));
}

// "2x2xf32=1 2 3 4"
static weft_status_t read_literal(weft_arena_t* arena, const char* source, weft_host_tensor_t* out_tensor) {
  const char* at = source;
  const char* equals = strchr(source, '=');
  while (*at >= '0' && *at <= '9') {
    char* end = NULL;
    long long extent = strtoll(at, &end, 10);
    if (*end != 'x' || out_tensor->rank == 8) break;
    out_tensor->extent[out_tensor->rank++] = extent;
    at = end + 1;
  }
  char type[16] = "";
  if (equals - at < 16) memcpy(type, at, (size_t)(equals - at));
  if (!weft_dtype_parse(type, &out_tensor->dtype)) {
    return weft_error(INVALID_ARGUMENT, "'%s' is neither a .npy nor a .pb file nor a literal such as 2x2xf32=1 2 3 4",
                      source);
  }
  int64_t elements = 1;
  for (int32_t i = 0; i < out_tensor->rank; ++i) {
    if (!weft_checked_mul(elements, out_tensor->extent[i], &elements) || elements > (1 << 28)) {
      return weft_error(INVALID_ARGUMENT, "'%s' is too large for a literal", source);
    }
  }
  size_t size = weft_dtype_size(out_tensor->dtype);
  out_tensor->size = (size_t)elements * size;
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, (size_t)elements, size, &out_tensor->data));
  char* next = (char*)equals + 1;
  for (int64_t i = 0; i < elements; ++i) {
    while (*next == ',' || *next == ' ') ++next;
    char* end = NULL;
    double value = strtod(next, &end);
    if (end == next)
      return weft_error(INVALID_ARGUMENT, "'%s' has %lld values, its shape needs %lld", source, (long long)i,
                        (long long)elements);
    weft_dtype_store(out_tensor->dtype, value, (uint8_t*)out_tensor->data + (size_t)i * size);
    next = end;
  }
  next += strspn(next, " ,");
  if (*next)
    return weft_error(INVALID_ARGUMENT, "'%s' has more values than its shape's %lld", source, (long long)elements);
  return weft_ok();
}

static weft_status_t make_random(weft_arena_t* arena, uint64_t seed, const weft_tensor_spec_t* spec, int64_t steps,
                                 weft_host_tensor_t* out_tensor) {
  size_t size = weft_dtype_size(spec->dtype);
  size_t elements = (size_t)(weft_tensor_spec_elements(spec) * steps);
  WEFT_RETURN_IF_ERROR(weft_arena_allocate(arena, elements, size, &out_tensor->data));
  out_tensor->size = elements * size;
  weft_rng_t rng;
  weft_rng_seed(&rng, seed);
  for (size_t i = 0; i < elements; ++i) {
    double unit = weft_rng_unit(&rng);
    double value = weft_dtype_is_float(spec->dtype) ? 2 * unit - 1
                   : spec->dtype == WEFT_DTYPE_BOOL ? unit > 0.5
                                                    : floor(unit * 16);
    weft_dtype_store(spec->dtype, value, (uint8_t*)out_tensor->data + i * size);
  }
  return weft_ok();
}

static weft_status_t load(weft_arena_t* arena, const char* source, const char* more, weft_host_tensor_t* out_tensor) {
  if (ends_with(source, ".npy")) return weft_npy_read(arena, source, out_tensor);
  if (ends_with(source, ".pb")) return weft_frontend_read_tensor(arena, source, out_tensor);
  if (strchr(source, '=')) return read_literal(arena, source, out_tensor);
  return weft_error(INVALID_ARGUMENT,
                    "%s: cannot read '%s'; give FILE.npy, FILE.pb%s or a literal such as 2x2xf32=1 2 3 4",
                    out_tensor->name, source, more);
}

weft_status_t weft_tensor_io_load(weft_arena_t* arena, const char* name, const char* source,
                                  weft_host_tensor_t* out_tensor) {
  *out_tensor = (weft_host_tensor_t){.name = name};
  weft_status_t status = load(arena, source, "", out_tensor);
  out_tensor->name = name;
  return status;
}

weft_status_t weft_tensor_io_read(weft_arena_t* arena, const char* source, const weft_tensor_spec_t* spec,
                                  int64_t* inout_steps, weft_host_tensor_t* out_tensor) {
  *out_tensor = (weft_host_tensor_t){.name = spec->name};
  if (!strncmp(source, "random", 6) && (!source[6] || source[6] == ':')) {
    if (*inout_steps == 0) *inout_steps = 1;
    out_tensor->dtype = spec->dtype;
    return make_random(arena, source[6] ? strtoull(source + 7, NULL, 10) : 1, spec, *inout_steps, out_tensor);
  }
  WEFT_RETURN_IF_ERROR(load(arena, source, ", random:SEED", out_tensor));
  int32_t rank = out_tensor->rank;
  int64_t steps = 0;
  if (rank == spec->rank) {
    bool same = true;
    for (int32_t i = 1; i < rank; ++i) same &= out_tensor->extent[i] == spec->extent[i];
    if (same && rank == 0) steps = 1;
    if (same && rank > 0 && spec->extent[0] > 0 && out_tensor->extent[0] % spec->extent[0] == 0)
      steps = out_tensor->extent[0] / spec->extent[0];
  } else if (rank == spec->rank + 1) {
    steps = out_tensor->extent[0];
    for (int32_t i = 1; i < rank; ++i) steps = out_tensor->extent[i] == spec->extent[i - 1] ? steps : 0;
  }
  char got[160], wanted[160];
  format_shape(got, sizeof got, out_tensor->dtype, rank, out_tensor->extent);
  format_shape(wanted, sizeof wanted, spec->dtype, spec->rank, spec->extent);
  if (steps < 1 || out_tensor->dtype != spec->dtype) {
    return weft_error(INVALID_ARGUMENT,
                      "%s: '%s' is %s, the network takes %s (several inputs: a multiple of the first extent)",
                      spec->name, source, got, wanted);
  }
  if (*inout_steps && steps != *inout_steps) {
    return weft_error(INVALID_ARGUMENT, "%s: '%s' (%s) holds %lld inputs of %s, others or --steps say %lld", spec->name,
                      source, got, (long long)steps, wanted, (long long)*inout_steps);
  }
  *inout_steps = steps;
  return weft_ok();
}

weft_status_t weft_tensor_io_write(weft_arena_t* arena, const char* path, const weft_tensor_spec_t* spec, int64_t steps,
                                   const void* data) {
  weft_host_tensor_t tensor = {.name = spec->name, .dtype = spec->dtype, .rank = spec->rank, .data = (void*)data};
  memcpy(tensor.extent, spec->extent, sizeof tensor.extent);
  if (steps > 1) {
    if (tensor.rank > 0) {
      tensor.extent[0] *= steps;
    } else {
      tensor.extent[tensor.rank++] = steps;
    }
  }
  tensor.size = (size_t)(weft_tensor_spec_elements(spec) * steps) * weft_dtype_size(spec->dtype);
  if (ends_with(path, ".npy")) return weft_npy_write(arena->allocator, path, &tensor);
  if (ends_with(path, ".pb")) return weft_frontend_write_tensor(arena->allocator, path, &tensor);
  return weft_error(INVALID_ARGUMENT, "%s: an output file ends in .npy or .pb", path);
}

void weft_tensor_io_compare(weft_dtype_e dtype, const void* got, const void* wanted, int64_t elements, double rtol,
                            double atol, weft_difference_t* out_difference) {
  *out_difference = (weft_difference_t){.elements = elements, .worst = -1};
  double worst_excess = -INFINITY;
  size_t size = weft_dtype_size(dtype);
  for (int64_t i = 0; i < elements; ++i) {
    double a = weft_dtype_load(dtype, (const uint8_t*)got + (size_t)i * size);
    double b = weft_dtype_load(dtype, (const uint8_t*)wanted + (size_t)i * size);
    double absolute = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
    if (isnan(absolute)) absolute = INFINITY;
    double allowed = atol + rtol * fabs(b);
    out_difference->wrong += absolute > 0 && !(absolute <= allowed);
    out_difference->largest_absolute = fmax(out_difference->largest_absolute, absolute);
    if (absolute > 0) out_difference->largest_relative = fmax(out_difference->largest_relative, absolute / fabs(b));
    double excess = absolute > 0 ? absolute - (isinf(allowed) ? 0 : allowed) : -allowed;
    if (excess > worst_excess) {
      worst_excess = excess;
      out_difference->worst = i;
      out_difference->worst_got = a;
      out_difference->worst_wanted = b;
    }
  }
}

weft_status_t weft_tensor_io_verdict(const char* name, const weft_difference_t* difference, const char* reference,
                                     double rtol, double atol) {
  const weft_difference_t* d = difference;
  if (!d->wrong) return weft_ok();
  return weft_error(MISMATCH,
                    "%s differs from %s in %lld of %lld elements (rtol %g, atol %g); the worst is element %lld: got "
                    "%.9g, expected %.9g",
                    name, reference, (long long)d->wrong, (long long)d->elements, rtol, atol, (long long)d->worst,
                    d->worst_got, d->worst_wanted);
}
