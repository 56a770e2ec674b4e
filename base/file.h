// Files: mapped reads, and writes that happen whole or not at all.
#pragma once
#include <stdio.h>

#include "base/allocator.h"

typedef struct weft_mapping_t {
  const uint8_t* data; // never NULL after success, also for an empty file
  size_t size;
  void* base; // private
} weft_mapping_t;

// Maps a file read-only. Errors name the path and the reason.
weft_status_t weft_file_map(const char* path, weft_mapping_t* out_mapping);
void weft_file_unmap(weft_mapping_t* mapping);

// Writes to a temporary file beside `path`; commit flushes and renames it over `path`, abandon removes it.
typedef struct weft_file_writer_t {
  FILE* stream;
  char* path;
  char* temporary;
  weft_allocator_t allocator;
} weft_file_writer_t;
weft_status_t weft_file_writer_open(weft_allocator_t allocator, const char* path, weft_file_writer_t* out_writer);
weft_status_t weft_file_writer_commit(weft_file_writer_t* writer);
void weft_file_writer_abandon(weft_file_writer_t* writer); // harmless after commit
// open + write + commit.
weft_status_t weft_file_write(weft_allocator_t allocator, const char* path, const void* data, size_t size);
